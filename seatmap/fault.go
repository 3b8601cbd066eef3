package seatmap

import (
	"fmt"
	"strings"
)

// Fault is one thing wrong with what somebody wrote, told so that they find
// the place: which file, which part of it, and why it cannot stand.
type Fault struct {
	File   string // as its author named it; empty when it came from no file
	Path   string // such as zones[0].rows[3].seats[2].category; empty for the whole
	Reason string
}

// String returns "file: path: reason" without the parts that are empty.
func (f Fault) String() string {
	var parts []string
	for _, p := range []string{f.File, f.Path, f.Reason} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ": ")
}

// Faults is an error that tells all that is wrong, one fault a line. A nil or
// empty list is no error: return Err.
type Faults []Fault

// Error makes Faults an error.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns nil when there is no fault, else fs.
func (fs Faults) Err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// In returns the faults as faults of a file.
func (fs Faults) In(file string) Faults {
	named := make(Faults, len(fs))
	for i, f := range fs {
		f.File = file
		named[i] = f
	}
	return named
}

// Add appends a fault at path.
func (fs *Faults) Add(path, reason string, args ...any) {
	*fs = append(*fs, Fault{Path: path, Reason: fmt.Sprintf(reason, args...)})
}
