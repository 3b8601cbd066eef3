// Package jobs shows operators the jobs of the queue that get nowhere, and has one
// tried again now. It promises that a job is neither lost nor made twice by that:
// one that runs, is done, or has a twin in the queue is refused.
//
// A job is stuck when it has failed five times at least and is not done, or was
// given up (discarded, cancelled). Most jobs are tried for a week, so those that are
// given up are few, and those that fail all the time are what somebody should see.
//
// The clock is Postgres's. It does not know what a job does.
package jobs

import (
	"encoding/json"
	"errors"
	"time"
)

// Job is one as the API shows it.
type Job struct {
	ID        int64           `json:"id"`
	Kind      string          `json:"kind"`
	State     string          `json:"state"` // as the queue has it
	Args      json.RawMessage `json:"args"`
	Tries     int             `json:"tries"` // that failed
	LastError string          `json:"lastError,omitempty"`
	NextAt    *time.Time      `json:"nextAt,omitempty"` // absent: never, or now
	At        time.Time       `json:"at"`               // when it was queued
	Since     *time.Time      `json:"since,omitempty"`  // when it failed first
}

// Query says which jobs are meant, the oldest first.
type Query struct {
	State string // one of States
	Kind  string // empty: any
	After int64
	Limit int
}

// Stuck is the state of what gets nowhere, which the queue does not know.
const Stuck = "stuck"

// States that can be asked for.
var States = []string{Stuck, "discarded", "cancelled", "available", "pending", "scheduled", "running", "retryable", "completed"}

// Page is an answer to Query.
type Page struct {
	Jobs []Job `json:"jobs"`
	Next int64 `json:"next,omitempty"` // ask for what is after it; absent: that was all
}

// Outcomes a caller can act on. Nothing has changed.
var (
	ErrNoJob   = errors.New("jobs: no such job")
	ErrRunning = errors.New("jobs: the job is running")
	ErrDone    = errors.New("jobs: the job is done")
	ErrTwin    = errors.New("jobs: another job does the same")
)
