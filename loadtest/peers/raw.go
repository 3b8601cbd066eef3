package peers

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"seatcast/loadtest/proc"
	"seatcast/loadtest/reader"
)

//go:embed raw/raw.c
var rawSource []byte

// raw writes to every socket what it is given on its input.
type raw struct {
	numbered
	child   *proc.Child
	port    int
	ws      bool
	changes Changes
	note    string
}

// handshake is the answer of a server that does not look at what it is asked.
func handshake(ws bool) string {
	if ws {
		return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + reader.Accept + "\r\n\r\n"
	}
	return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\r\n"
}

func startRaw(ctx context.Context, s Setup) (Server, error) {
	r := &raw{ws: s.WS, changes: s.Changes}
	path, args, err := rawProgram(ctx, s.Dir)
	if err != nil {
		return nil, err
	}
	if path == "" {
		path, args, r.note = s.Self, []string{"raw"}, "there is no cc here: raw is the loop in Go"
	}
	r.child, err = proc.Start(proc.Command{Name: "raw", Path: path, Args: append(args, handshake(s.WS)), Dir: s.Dir, On: s.On, In: true, Out: true})
	if err != nil {
		return nil, err
	}
	line, err := FirstLine(ctx, r.child)
	if err == nil {
		r.port, err = strconv.Atoi(line)
	}
	if err != nil {
		r.child.Kill()
		return nil, fmt.Errorf("it does not say its port: %w", err)
	}
	return r, nil
}

// rawProgram builds the loop in C; the path is empty when there is no compiler.
func rawProgram(ctx context.Context, dir string) (path string, args []string, err error) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return "", nil, nil
	}
	path = filepath.Join(dir, "raw")
	if err := os.WriteFile(path+".c", rawSource, 0o644); err != nil {
		return "", nil, err
	}
	if out, err := exec.CommandContext(ctx, cc, "-O2", "-o", path, path+".c").CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("cc: %w\n%s", err, out)
	}
	return path, nil, nil
}

func (r *raw) Target() reader.Target {
	return reader.Target{Addr: "127.0.0.1:" + strconv.Itoa(r.port), Path: "/", WS: r.ws, Ready: reader.Head}
}

func (r *raw) Pid() int     { return r.child.Pid() }
func (r *raw) Note() string { return r.note }

func (r *raw) Publish(_ context.Context, i int) error {
	delta := r.changes.Delta(i)
	bytes := event(delta, r.N(i))
	if r.ws {
		bytes = wsFrame(text(delta))
	}
	_, err := r.child.In.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(bytes))), bytes...))
	return err
}

func (r *raw) Stop() error { return r.child.Stop(patience) }
