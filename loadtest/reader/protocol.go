package reader

// Target is a server and how to watch something on it.
type Target struct {
	Addr        string `json:"addr"`
	Path        string `json:"path"` // of the request
	WS          bool   `json:"ws"`   // WebSocket; otherwise Server-Sent Events
	Subprotocol string `json:"subprotocol"`
	Say         string `json:"say"`       // WebSocket: the first message, if any
	SaySince    string `json:"say_since"` // the same of a session that resumes; %d is the number it holds
	Ready       Ready  `json:"ready"`     // when a session is on
	Numbered    bool   `json:"numbered"`  // a server of ours: snapshots, ids, resume
}

// Key is what every WebSocket handshake of a reader asks with, and Accept the
// answer to it.
const (
	Key    = "dGhlIHNhbXBsZSBub25jZQ=="
	Accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

// Ready says when a session counts as connected.
type Ready string

// A session is on once it has read this.
const (
	Head     Ready = "head"     // the head of the answer
	Message  Ready = "message"  // the first message
	Snapshot Ready = "snapshot" // the first snapshot
)

// Change is one change that will be published. It is recognised by its number,
// or, when that is not known before, by the first of its seats and what becomes
// of it.
type Change struct {
	N        int64 `json:"n,omitempty"`
	Seat     int   `json:"seat"`
	Released bool  `json:"released,omitempty"` // the seat becomes available; otherwise held
	Due      int64 `json:"due"`                // Unix nanoseconds
	Warm     bool  `json:"warm,omitempty"`     // not measured
}

// Plan is what will be published, in order.
type Plan struct {
	Changes []Change `json:"changes"`
}

// Opened tells of sessions that were opened or came back.
type Opened struct {
	On      int     `json:"on"`      // sessions on
	Seconds float64 `json:"seconds"` // from the first connect to the last session on
}

// Report is what was read since the plan.
type Report struct {
	Expected   int64   `json:"expected"`   // measured changes of the plan times sessions that were there all the time
	Deliveries int64   `json:"deliveries"` // of measured changes
	Frames     int64   `json:"frames"`     // deltas read that brought measured changes
	Bytes      int64   `json:"bytes"`      // read from sockets since the first measured change
	First      int64   `json:"first"`      // Unix nanoseconds of the first and last measured delivery
	Last       int64   `json:"last"`
	P50        float64 `json:"p50"` // milliseconds, over all deliveries
	P99        float64 `json:"p99"`
	Max        float64 `json:"max"`
	LastP50    float64 `json:"last_p50"` // milliseconds from due to the last session, median over changes
	Counts
}

// Counts are of the whole life of a reader.
type Counts struct {
	On        int            `json:"on"`        // sessions on now
	Repeats   int64          `json:"repeats"`   // deltas a session had already
	Snapshots int64          `json:"snapshots"` // read after the one a session began with
	Resets    int64          `json:"resets"`
	Degraded  int64          `json:"degraded"`
	Beats     int64          `json:"beats"`
	Joined    int64          `json:"joined"`  // sessions that came back by churn or herd
	Closed    map[string]int `json:"closed"`  // sessions the server ended, by how
	Refused   map[string]int `json:"refused"` // sessions that were not accepted, by how
	Faults    int64          `json:"faults"`
	Fault     string         `json:"fault"` // the first of them
}

// Drained tells how sessions left one server and came to the next.
type Drained struct {
	LeftPerSecond []int `json:"left_per_second"`
	BackPerSecond []int `json:"back_per_second"`
	Unannounced   int   `json:"unannounced"` // were not told when to come back
	Counts
}

// Final is one map and how many sessions have it.
type Final struct {
	N        int64  `json:"n"`
	Map      []byte `json:"map"`
	Sessions int    `json:"sessions"`
}

// Join says how sessions are opened.
type Join struct {
	Target Target `json:"target"`
	Conns  int    `json:"conns"`
	Dead   int    `json:"dead"`   // how many of them never read once they are on
	Window int    `json:"window"` // connects under way at a time; 0 is all
}

// Return says how sessions come back.
type Return struct {
	Numbers   bool    `json:"numbers"`    // with the number they hold
	PerSecond float64 `json:"per_second"` // churn: so many leave and come back; alternately with their number and without
}

// request is one line to the reader, reply one line from it. Everything but a
// progress line answers a request.
type request struct {
	Op     string  `json:"op"`
	Join   *Join   `json:"join,omitempty"`
	Plan   *Plan   `json:"plan,omitempty"`
	Return *Return `json:"return,omitempty"`
	Next   *Target `json:"next,omitempty"`
	Within int64   `json:"within,omitempty"` // milliseconds an answer may take
}

type reply struct {
	Progress *int64   `json:"progress,omitempty"`
	Err      string   `json:"err,omitempty"`
	Opened   *Opened  `json:"opened,omitempty"`
	Report   *Report  `json:"report,omitempty"`
	Drained  *Drained `json:"drained,omitempty"`
	Finals   []Final  `json:"finals,omitempty"`
}
