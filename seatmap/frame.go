package seatmap

// Frames are the JSON objects a watcher reads: as the data of an SSE event of
// the same name, or over WebSocket with "topic" and "type" beside the fields.

// Snapshot is the whole state of an event at one number; it supersedes every
// delta up to N. It is also the body of GET …/seatmap.
type Snapshot struct {
	N     int64          `json:"n"`
	Chart string         `json:"chart"` // SHA-256 of the chart the indexes are of
	Map   Map            `json:"map"`
	Areas map[string]int `json:"areas"` // places left by area; never null
}

// Delta is what changed between two numbers: every list is present, empty or
// not, so a reader needs no test for absence.
type Delta struct {
	N        int64          `json:"n"`
	Prev     int64          `json:"prev"`
	At       int64          `json:"at"`
	Reserved []int          `json:"reserved"`
	Released []int          `json:"released"`
	Booked   []int          `json:"booked"`
	Closed   []int          `json:"closed"`
	Areas    map[string]int `json:"areas"`

	// Chart is the SHA-256 of the chart in force, in the answer to a poll only:
	// a stream that goes on under another chart begins with a reset.
	Chart string `json:"chart,omitempty"`
}

// Hello opens every stream: the number the server is at, the chart in force
// and the server's clock, which countdowns are measured by.
type Hello struct {
	N     int64  `json:"n"`
	Chart string `json:"chart"`
	At    int64  `json:"at"` // Unix milliseconds
}

// Topic returns the name of an event's map as a topic of numbered frames.
func Topic(event string) string { return "seatmap/" + event }
