package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Command says what to start and how.
type Command struct {
	Name string // of the child in messages and of its log
	Path string
	Args []string
	Env  []string // added to ours
	Dir  string   // where its log is kept
	On   Cores    // it may use; nil for those we may
	In   bool     // give it a standard input, Child.In
	Out  bool     // give us its standard output, Child.Out; otherwise that goes to the log
}

// Child is a process that was started.
type Child struct {
	In  io.WriteCloser // nil unless asked for
	Out io.ReadCloser  // nil unless asked for

	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone
	err  error         // how it ended, and when; read after done
	end  time.Time
}

// Start starts a child. It returns when the process runs, not when it answers.
func Start(c Command) (*Child, error) {
	p := &Child{name: c.Name, log: filepath.Join(c.Dir, c.Name+".log"), cmd: exec.Command(c.Path, c.Args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	lastWord(p.cmd.SysProcAttr)
	out, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	defer func() { _ = out.Close() }() // the child has its own
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.pipes(c); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	started := make(chan error)
	go p.live(c.On, started) // joined through done
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	return p, nil
}

func (p *Child) pipes(c Command) (err error) {
	if c.In {
		if p.In, err = p.cmd.StdinPipe(); err != nil {
			return err
		}
	}
	if c.Out {
		p.cmd.Stdout = nil
		p.Out, err = p.cmd.StdoutPipe()
	}
	return err
}

// live starts the process and waits for its end on a thread of its own: the
// child inherits the cores of the thread that forks, and to the kernel the end
// of that thread is the death of the parent.
func (p *Child) live(on Cores, started chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	if on != nil {
		if err := pin(0, on); err != nil {
			started <- err
			return
		}
	}
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	p.end = time.Now()
	close(p.done)
}

// Pid is the number of the process.
func (p *Child) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process is gone.
func (p *Child) Done() <-chan struct{} { return p.done }

// Ended is when the process ended. It waits for that.
func (p *Child) Ended() time.Time {
	<-p.done
	return p.end
}

// Terminate asks the process to end and does not wait.
func (p *Child) Terminate() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// Stop asks the process to end and waits for it; one that does not listen
// within patience is killed with all its children, which is an error. A process
// that has ended already is none.
func (p *Child) Stop(patience time.Duration) error {
	if p == nil {
		return nil
	}
	if err := p.Terminate(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		p.Kill()
		return fmt.Errorf("%s did not stop within %s and was killed", p.name, patience)
	}
}

// Kill ends the process and its children at once, and waits.
func (p *Child) Kill() {
	if p == nil {
		return
	}
	_ = syscall.Kill(-p.Pid(), syscall.SIGKILL)
	<-p.done
}

// Death tells how the process ended, with the end of its log. It waits for that.
func (p *Child) Death() error {
	<-p.done
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended (%s):\n%s", p.name, how, p.Tail())
}

// Tail is the end of what it has written.
func (p *Child) Tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
