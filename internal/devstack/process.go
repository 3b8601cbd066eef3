package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// patience is how long a server may take to start or to stop in good order.
// Recovery after a crash is the slowest of these.
const patience = 60 * time.Second

// A process is a child of ours.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the process is gone
	err  error         // how it ended; read after done
}

// command describes a child that runs as the home's account in one of its
// folders. It is in a group of its own, so that a Ctrl-C at the terminal reaches
// us alone and we stop the servers after those who use them. Should we die,
// the kernel sends it lastWord.
func (h *Home) command(lastWord syscall.Signal, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=" + dir}
	cmd.SysProcAttr = attributes(lastWord)
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Credential = h.account.credential()
	return cmd
}

// launch starts cmd with its output going to a fresh log of that name.
func (h *Home) launch(name string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, cmd: cmd, log: h.path("log", name+".log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("devstack: %w", err)
	}
	defer func() { _ = out.Close() }()
	cmd.Stdout, cmd.Stderr = out, out
	started := make(chan error)
	go p.live(started) // joined through done
	if err := <-started; err != nil {
		return nil, fmt.Errorf("devstack: start %s: %w", name, err)
	}
	return p, nil
}

// live starts the process and waits for its end on one thread kept for it: the
// kernel counts the end of the thread that forked as the death of the parent.
func (p *process) live(started chan<- error) {
	runtime.LockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// answers waits until probe succeeds. It fails when the process ends, when ctx
// ends, or when patience does.
func (p *process) answers(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error // of a probe that had its time
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-p.done:
			return p.death()
		case <-ctx.Done():
			return fmt.Errorf("devstack: %s does not answer: %w: %w", p.name, context.Cause(ctx), last)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// finishes waits for a process that ends by itself. When ctx ends first the
// process and its children are killed.
func (p *process) finishes(ctx context.Context) error {
	select {
	case <-ctx.Done():
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
		return fmt.Errorf("devstack: %s: %w", p.name, ctx.Err())
	case <-p.done:
		if p.err != nil {
			return p.death()
		}
		return nil
	}
}

// stop asks the process to end and waits for it; one that does not listen is killed.
func (p *process) stop(please syscall.Signal) error {
	if err := p.cmd.Process.Signal(please); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("devstack: stop %s: %w", p.name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("devstack: %s did not stop within %s and was killed", p.name, patience)
	}
}

// ended says that the process is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) kill() {
	p.quit(syscall.SIGKILL)
}

// quit ends the process at once, the way it takes a signal for that.
func (p *process) quit(how syscall.Signal) {
	_ = p.cmd.Process.Signal(how)
	<-p.done
}

// death tells how the process ended, with the end of its log.
func (p *process) death() error {
	<-p.done
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		text = []byte(err.Error())
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	err = fmt.Errorf("devstack: %s ended (%s):\n%s", p.name, how, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	if strings.Contains(string(text), "Address already in use") {
		err = fmt.Errorf("%w: %w", err, errPortTaken)
	}
	return err
}

// evict ends what lingers of an earlier server in the folder: its parent is dead,
// since we hold the lock. It is asked first and killed when it does not listen.
func evict(folder, program string, please syscall.Signal) error {
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		left := lingering(folder, program)
		switch age := time.Since(start); {
		case len(left) == 0:
			return nil
		case age > patience:
			return fmt.Errorf("devstack: processes %v of an earlier start in %s do not end", left, folder)
		case age > 3*time.Second:
			please = syscall.SIGKILL
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, please)
		}
	}
}
