package devstack

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrMissing says that a program is not installed; the error names it and the
// Debian package it comes in.
var ErrMissing = errors.New("devstack: not installed")

func missing(program, debian string) error {
	return fmt.Errorf("%w: %s (Debian: apt-get install %s)", ErrMissing, program, debian)
}

func program(name, debian string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", missing(name, debian)
	}
	return filepath.Abs(path)
}

// postgresBin is the folder of PostgreSQL's programs: the newest, or for data
// that is there already the one of the release that made it. Debian keeps each
// release in a folder of its own that is not in PATH.
func postgresBin(data string) (string, error) {
	wanted, _ := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	release := strings.TrimSpace(string(wanted))
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // not the client's alone
	for i, initdb := range bins {
		bins[i] = filepath.Dir(initdb)
	}
	slices.SortFunc(bins, func(a, b string) int { return cmp.Compare(versionIn(b), versionIn(a)) })
	if initdb, err := exec.LookPath("initdb"); err == nil {
		bins = append(bins, filepath.Dir(initdb))
	}
	for _, bin := range bins {
		if release == "" || releaseOf(bin) == release {
			return bin, nil
		}
	}
	if len(bins) > 0 {
		return "", fmt.Errorf("%w: PostgreSQL %s, which made %s (Debian: apt-get install postgresql-%s)", ErrMissing, release, data, release)
	}
	return "", missing("initdb", "postgresql")
}

// versionIn reads 15 from /usr/lib/postgresql/15/bin.
func versionIn(bin string) float64 {
	v, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(bin)), 64)
	return v
}

// releaseOf is the main release of the PostgreSQL in bin, "15", or nothing.
func releaseOf(bin string) string {
	out, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return ""
	}
	_, version, _ := strings.Cut(string(out), ") ")
	release := strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if len(release) == 0 {
		return ""
	}
	return release[0]
}

// faketimeLibrary is where libfaketime is. The faketime program itself forks and
// would hide the server's process from us.
func faketimeLibrary() (string, error) {
	for _, pattern := range []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1", "/usr/local/lib/faketime/libfaketime.so.1"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", missing("libfaketime.so.1", "faketime")
}
