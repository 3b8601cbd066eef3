package devtest_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
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
	const step = time.Millisecond // a clock is as fine as the offset it was given
	for _, offset := range []time.Duration{90 * time.Second, -1500 * time.Millisecond} {
		server := devtest.RedisServer(t, devstack.RedisOptions{ClockOffset: offset})
		client := server.Client()
		asked := time.Now()
		now, err := client.Time(t.Context()).Result()
		told := time.Now()
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		if most, least := now.Sub(asked), now.Sub(told); least > offset+step || most < offset-step {
			t.Errorf("clock is between %v and %v ahead, want %v", least, most, offset)
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
	ctx := t.Context()
	cluster := devtest.RedisCluster(t)
	first := primary(t, cluster, "{one}")
	served := map[*devstack.Redis]bool{}
	for k := range 50 {
		served[primary(t, cluster, "{"+strings.Repeat("x", k)+"}")] = true
	}
	if len(served) != 3 {
		t.Errorf("%d servers serve fifty keys", len(served))
	}
	for k, server := range cluster.Servers()[:3] { // an epoch of two would be settled later, or too late
		client := server.Client()
		defer func() { _ = client.Close() }()
		if info, err := client.ClusterInfo(ctx).Result(); err != nil || !strings.Contains(info, "cluster_my_epoch:"+strconv.Itoa(k+1)+"\r") {
			t.Errorf("primary %d: %v\n%s", k, err, info)
		}
	}
	first.Kill()
	if err := cluster.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	if now := primary(t, cluster, "{one}"); now == first {
		t.Error("a primary that was killed serves")
	}
}

// A server that does not run for a while is what a busy machine looks like to
// the others.
func TestAClusterAndItsSentinelsWaitForAServerThatIsSlow(t *testing.T) {
	cluster, watched := devtest.RedisCluster(t), devtest.RedisSentinel(t)
	slow := primary(t, cluster, "{one}")
	for _, server := range []*devstack.Redis{slow, watched.Primary} {
		halt(t, server, 4*time.Second)
	}
	if now := primary(t, cluster, "{one}"); now != slow {
		t.Error("a primary that was slow has been replaced")
	}
	client := watched.Primary.Client()
	defer func() { _ = client.Close() }()
	if role, err := client.Do(t.Context(), "ROLE").Slice(); err != nil || role[0] != "master" {
		t.Errorf("a primary that was slow is %v %v", role, err)
	}
}

// halt has a server do nothing for a while.
func halt(t *testing.T, server *devstack.Redis, d time.Duration) {
	t.Helper()
	client := server.Client()
	defer func() { _ = client.Close() }()
	pid, err := strconv.Atoi(client.InfoMap(t.Context(), "server").Item("Server", "process_id"))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGSTOP)
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(d) // longer than anybody is waited for in an election
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

func primary(t *testing.T, cluster *devstack.RedisCluster, key string) *devstack.Redis {
	t.Helper()
	server, err := cluster.Primary(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func TestSentinelsPromoteTheReplica(t *testing.T) {
	watched := devtest.RedisSentinel(t)
	if err := watched.FailOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	replica := watched.Replica.Client()
	defer func() { _ = replica.Close() }()
	if role, err := replica.Do(t.Context(), "ROLE").Slice(); err != nil || role[0] != "master" {
		t.Errorf("the replica is %v %v", role, err)
	}
}
