package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/nats-io/nats.go"

	"seatcast/seatmap"
)

// subject carries the changes of one event, each as the JSON its script logged.
func subject(event string) string { return "seatmap." + event }

// Connect opens a connection to NATS that never gives up and buffers nothing
// while it is down: what could not be said is repaired from the log. Give the
// Feed a connection of its own.
func Connect(servers, name string, m *Metrics, log *slog.Logger, more ...nats.Option) (*nats.Conn, error) {
	opts := append([]nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1),
		nats.RetryOnFailedConnect(true),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrSlowConsumer) {
				m.missed.WithLabelValues("slow_consumer").Inc()
				return
			}
			log.Warn("nats", "err", err, "subject", subjectOf(sub))
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil: it was us who closed it
				log.Warn("nats disconnected", "name", name, "err", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			m.reconnect.WithLabelValues(name).Inc()
			log.Info("nats reconnected", "name", name)
		}),
	}, more...)
	m.reconnect.WithLabelValues(name) // at 0
	nc, err := nats.Connect(servers, opts...)
	if unreadable := new(url.Error); errors.As(err, &unreadable) {
		err = errors.New("the URL cannot be read") // the error repeats it, the password too
	}
	if err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	return nc, nil
}

func subjectOf(sub *nats.Subscription) string {
	if sub == nil {
		return ""
	}
	return sub.Subject
}

// Voice tells all nodes of a change.
type Voice struct {
	nc   *nats.Conn
	near *Feed // of this process, or nil
	m    *Metrics
	log  *slog.Logger
}

// NewVoice returns a Voice on nc.
func NewVoice(nc *nats.Conn, m *Metrics, log *slog.Logger) *Voice {
	return &Voice{nc: nc, m: m, log: log}
}

// Near has f know each change at once, before it is heard. It is called before
// the first Publish.
func (v *Voice) Near(f *Feed) { v.near = f }

// Publish sends a change as its script logged it. It never fails the caller:
// the change is true already, and a message lost is repaired from the log.
func (v *Voice) Publish(ctx context.Context, event string, change []byte) {
	if v.near != nil {
		v.near.tell(event, change)
	}
	if err := v.nc.Publish(subject(event), change); err != nil {
		v.m.unsaid.Inc()
		v.log.WarnContext(ctx, "change not published", "event", event, "err", err)
	}
}

// Ear hears what all nodes say.
type Ear struct {
	nc *nats.Conn
	m  *Metrics
}

// NewEar returns an Ear on nc, a connection that does nothing else.
func NewEar(nc *nats.Conn, m *Metrics) *Ear { return &Ear{nc: nc, m: m} }

// listenPatience bounds the wait for a server to know of a subscription.
const listenPatience = time.Second

// listen calls hear with every change said of an event, in the order they
// arrive, until stop is called. hear must not block. When listen returns, the
// server knows of it, if there is one: a map read from then on misses nothing.
func (e *Ear) listen(ctx context.Context, event string, hear func(seatmap.Change)) (stop func() error, err error) {
	sub, err := e.nc.Subscribe(subject(event), func(msg *nats.Msg) {
		var c seatmap.Change
		if json.Unmarshal(msg.Data, &c) != nil || c.N == 0 {
			e.m.missed.WithLabelValues("unreadable").Inc()
			return
		}
		hear(c)
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to changes of %s: %w", event, err)
	}
	if e.nc.IsConnected() {
		ctx, cancel := context.WithTimeout(ctx, listenPatience)
		defer cancel()
		_ = e.nc.FlushWithContext(ctx) // what is missed meanwhile is repaired, only later
	}
	return sub.Unsubscribe, nil
}
