package live_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/seatmap/live"
)

func TestSnapshotOfAColdEventRebuildsItFirst(t *testing.T) {
	rdb := devtest.Redis(t)
	w := newWriter(t, rdb, devtest.NATS(t))
	if err := rdb.Del(t.Context(), seatmap.SeqKey(w.event)).Err(); err != nil {
		t.Fatal(err)
	}
	m := live.NewMaps(rdb, w)
	if _, err := m.Read(t.Context(), w.event); !errors.Is(err, live.ErrCold) {
		t.Errorf("read of a cold event: %v, want ErrCold", err)
	}
	s, err := m.Snapshot(t.Context(), w.event)
	if err != nil || s.N == 0 || s.Areas["floor"] != 500 {
		t.Errorf("got %+v, %v", s, err)
	}
	if got := w.rebuilt(); len(got) != 1 || got[0] != 0 {
		t.Errorf("rebuilt with %v, want once with 0", got)
	}
}

func TestVoiceIsHeardAndNeverFailsItsCaller(t *testing.T) {
	server, err := devstack.StartNATS()
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	m := live.NewMetrics(reg)
	nc, err := live.Connect(server.URL(), "test", m, discard())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	sub, err := nc.SubscribeSync("seatmap.derby")
	if err != nil {
		t.Fatal(err)
	}
	voice := live.NewVoice(nc, m, discard())
	voice.Publish(t.Context(), "derby", []byte(`{"n":1}`))
	msg, err := sub.NextMsg(5 * time.Second)
	if err != nil || string(msg.Data) != `{"n":1}` {
		t.Errorf("heard %v, %v", msg, err)
	}
	server.Stop()
	b := &bundle{writer: &writer{tb: t}, reg: reg, crowd: &crowd{tb: t}}
	b.until(5*time.Second, "a change counted as unpublished", func() bool {
		voice.Publish(t.Context(), "derby", []byte(`{"n":2}`))
		return b.count("seatmap_unpublished_total") > 0
	})
}

// BenchmarkSnapshot60000 reads a stadium of which half is held, and makes the
// forms it is served in.
func BenchmarkSnapshot60000(b *testing.B) {
	rdb := devtest.Redis(b)
	w := newWriter(b, rdb, devtest.NATS(b))
	w.m = seatmap.NewMap(60_000)
	w.change(seatmap.Change{Reserved: rand.New(rand.NewPCG(1, 1)).Perm(60_000)[:30_000]})
	m := live.NewMaps(rdb, w)
	var frame, zipped []byte
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := m.Read(b.Context(), w.event); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read+encode", func(b *testing.B) {
		for b.Loop() {
			s, err := m.Read(b.Context(), w.event)
			if err != nil {
				b.Fatal(err)
			}
			if frame, err = json.Marshal(seatmap.Snapshot{N: s.N, Chart: "c0ffee", Map: s.Map, Areas: s.Areas}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(frame)), "bytes")
	})
	b.Run("gzip", func(b *testing.B) {
		for b.Loop() {
			var buf bytes.Buffer
			z := gzip.NewWriter(&buf)
			_, _ = z.Write(frame)
			_ = z.Close()
			zipped = buf.Bytes()
		}
		b.ReportMetric(float64(len(zipped)), "bytes")
	})
}
