package devtest_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m) }

func TestEveryDatabaseIsMigratedAndApart(t *testing.T) {
	a, b := devtest.Postgres(t), devtest.Postgres(t)
	if _, err := a.Exec(t.Context(), `INSERT INTO charts (sha, name, seats, body) VALUES (repeat('a', 64), 'x', 1, '')`); err != nil {
		t.Fatal(err)
	}
	var charts, jobs int
	if err := b.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM charts), (SELECT count(*) FROM river_job)`).Scan(&charts, &jobs); err != nil {
		t.Fatal(err)
	}
	if charts != 0 {
		t.Errorf("the other test's database has %d charts", charts)
	}
}

func TestRedisNeverEvicts(t *testing.T) {
	policy, err := devtest.Redis(t).ConfigGet(t.Context(), "maxmemory-policy").Result()
	if err != nil || policy["maxmemory-policy"] != "noeviction" {
		t.Fatalf("got %v, %v", policy, err)
	}
}

func TestRedisClockIsAhead(t *testing.T) {
	for _, offset := range []time.Duration{90 * time.Second, -1500 * time.Millisecond} {
		server := devtest.RedisServer(t, devstack.RedisOptions{ClockOffset: offset})
		client := server.Client()
		now, err := client.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		if off := time.Until(now) - offset; off.Abs() > 500*time.Millisecond {
			t.Errorf("clock is %v ahead, want %v", time.Until(now), offset)
		}
	}
}

func TestReplicaCopiesAndIsPromotedWithoutTheLostWrite(t *testing.T) {
	primary := devtest.RedisServer(t, devstack.RedisOptions{ClockOffset: time.Minute})
	replica := devtest.RedisServer(t, devstack.RedisOptions{ReplicaOf: primary.Addr()})
	p, r := primary.Client(), replica.Client()
	defer func() { _, _ = p.Close(), r.Close() }()
	if err := p.Set(t.Context(), "seat", "held", 0).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return r.Get(t.Context(), "seat").Val() == "held" })
	primary.Kill()
	if err := r.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.Set(t.Context(), "seat", "sold", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestRedisIsPinned(t *testing.T) {
	server := devtest.RedisServer(t, devstack.RedisOptions{CPU: "0"})
	client := server.Client()
	defer func() { _ = client.Close() }()
	pid := client.InfoMap(t.Context(), "server").Item("Server", "process_id")
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(status), "Cpus_allowed_list:\t0\n") {
		t.Errorf("process %s is not pinned:\n%s", pid, status)
	}
}

func TestNATSCarries(t *testing.T) {
	hears, speaks := devtest.NATS(t), devtest.NATS(t)
	sub, err := hears.SubscribeSync("seat")
	if err == nil {
		err = hears.Flush() // the server knows of the subscription now
	}
	if err == nil {
		err = speaks.Publish("seat", []byte("A12"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if msg, err := sub.NextMsg(10 * time.Second); err != nil || string(msg.Data) != "A12" {
		t.Fatalf("got %v, %v", msg, err)
	}
}

func TestEventsDiffer(t *testing.T) {
	if a, b := devtest.Event(t), devtest.Event(t); a == b {
		t.Fatalf("twice %s", a)
	}
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within 10 s")
		}
	}
}

func BenchmarkPostgresURL(b *testing.B) {
	devtest.PostgresURL(b) // starts the server
	for b.Loop() {
		devtest.PostgresURL(b)
	}
}

func TestAClusterServesEverySlotAndSurvivesAPrimary(t *testing.T) {
	cluster := devtest.RedisCluster(t)
	first := cluster.Primary(t.Context(), "{one}")
	if first == nil {
		t.Fatal("nobody serves the slot of {one}")
	}
	served := map[*devstack.Redis]bool{}
	for k := range 50 {
		served[cluster.Primary(t.Context(), "{"+strings.Repeat("x", k)+"}")] = true
	}
	if len(served) != 3 || served[nil] {
		t.Errorf("%d servers serve fifty keys", len(served))
	}
	first.Kill()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if now := cluster.Primary(t.Context(), "{one}"); now != nil && now != first {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no replica has taken the place of a primary that was killed")
		}
	}
}

func TestSentinelsPromoteTheReplica(t *testing.T) {
	watched := devtest.RedisSentinel(t)
	watched.Primary.Kill()
	replica := watched.Replica.Client()
	defer func() { _ = replica.Close() }()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		role, err := replica.Do(t.Context(), "ROLE").Slice()
		if err == nil && role[0] == "master" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the replica is %v %v", role, err)
		}
	}
}
