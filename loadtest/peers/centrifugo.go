package peers

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"

	"seatcast/loadtest/proc"
	"seatcast/loadtest/reader"
)

// centrifugoConfig lets anybody watch the one channel; the rest is as it comes.
const centrifugoConfig = `{
  "http_server": {"address": "127.0.0.1", "port": "%d"},
  "http_api": {"insecure": true},
  "client": {"insecure": true, "allowed_origins": ["*"]},
  "channel": {"without_namespace": {"allow_subscribe_for_client": true, "allow_subscribe_for_anonymous": true}},
  "uni_sse": {"enabled": true},
  "uni_websocket": {"enabled": true},
  "log": {"level": "error"}
}
`

// centrifugoAsk connects and subscribes at once.
const centrifugoAsk = `{"subs":{"c":{}}}`

func startCentrifugo(ctx context.Context, s Setup) (Server, error) {
	path, err := findGo("centrifugo")
	if err != nil {
		return nil, fmt.Errorf("%w: centrifugo (go install github.com/centrifugal/centrifugo/v6@v6.9.1)", ErrMissing)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(s.Dir, "centrifugo.json")
	if err := os.WriteFile(conf, fmt.Appendf(nil, centrifugoConfig, port), 0o644); err != nil {
		return nil, err
	}
	child, err := proc.Start(proc.Command{Name: "centrifugo", Path: path, Args: []string{"-c", conf}, Dir: s.Dir, On: s.On})
	if err != nil {
		return nil, err
	}
	p := &posted{child: child, changes: s.Changes, url: fmt.Sprintf("http://127.0.0.1:%d/api/publish", port),
		wrap:   func(delta []byte) []byte { return fmt.Appendf(nil, `{"channel":"c","data":%s}`, delta) },
		target: reader.Target{Addr: fmt.Sprintf("127.0.0.1:%d", port), WS: s.WS, Ready: reader.Message}}
	if s.WS {
		p.target.Path, p.target.Say = "/connection/uni_websocket", centrifugoAsk
	} else {
		p.target.Path = "/connection/uni_sse?cf_connect=" + url.QueryEscape(centrifugoAsk)
	}
	return p.up(ctx)
}

// findGo finds a program that `go install` made: in PATH, or where it puts them.
func findGo(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	dirs := []string{os.Getenv("GOBIN")}
	for _, root := range filepath.SplitList(os.Getenv("GOPATH")) {
		dirs = append(dirs, filepath.Join(root, "bin"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(home, "go", "bin"))
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); dir != "" && err == nil && !info.IsDir() {
			return path, nil
		}
	}
	return "", ErrMissing
}
