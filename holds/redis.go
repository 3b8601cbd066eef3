package holds

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"seatcast/seatmap"
)

// Store holds seats in Redis. Its methods may be called concurrently, from any
// number of processes. A method that changes the map publishes the change
// before it returns, and one that finds its event cold rebuilds it first.
// When Redis does not answer the error is seatmap.ErrUnavailable.
type Store struct {
	rdb     redis.UniversalClient
	judge   Judge
	voice   Voice
	log     *slog.Logger
	metrics metrics
	lately  *lately

	rebuilds singleflight.Group // by event: many who find it cold wait for one
}

// poolSize is how many connections to Redis a process has at most, unless its URL says
// another number. The ten for each core of go-redis are too few for a storm on a few
// cores: an answer waits until one of them is free, and its connection with it.
func poolSize() int { return max(64, 10*runtime.GOMAXPROCS(0)) }

// New returns a store on rdb, which should be one of Client.
func New(rdb redis.UniversalClient, judge Judge, voice Voice, log *slog.Logger) *Store {
	return &Store{rdb: rdb, judge: judge, voice: voice, log: log, metrics: newMetrics(), lately: newLately()}
}

// Options reads a Redis URL, or several with commas between for a cluster, or
// redis-sentinel://host:port?master=name of each sentinel that watches one; of
// their parameters db, pool_size and skip_verify count. It sets what a hold
// needs: a caller's deadline reaches the socket, a full pool says so soon, and
// a call without an answer is repeated once, which every script here stands.
func Options(urls string) (*redis.UniversalOptions, error) {
	var o redis.UniversalOptions
	for k, one := range strings.Split(urls, ",") {
		url, master, password, err := ofSentinel(one)
		if err == nil && k > 0 && master != o.MasterName {
			err = errors.New("all are of sentinels that watch one master, or none is")
		}
		if err != nil {
			return nil, fmt.Errorf("redis url: %w", err)
		}
		parsed, err := redis.ParseURL(url)
		if err != nil && strings.Contains(one, "@") {
			err = errors.New("cannot be read") // the error repeats parts of it, the password's perhaps
		}
		if err != nil {
			return nil, fmt.Errorf("redis url: %w", err)
		}
		o.Addrs, o.MasterName, o.SentinelPassword = append(o.Addrs, parsed.Addr), master, password
		o.DB, o.Username, o.Password, o.TLSConfig = parsed.DB, parsed.Username, parsed.Password, parsed.TLSConfig
		o.PoolSize = cmp.Or(parsed.PoolSize, poolSize())
	}
	o.ContextTimeoutEnabled = true
	o.MaxRetries = 1
	o.DialTimeout = time.Second
	o.DialerRetries = 1 // the repeated call dials again
	o.ReadBufferSize, o.WriteBufferSize = connBuffer, connBuffer
	o.ReadTimeout = 2 * time.Second
	o.WriteTimeout = 2 * time.Second
	o.PoolTimeout = 500 * time.Millisecond
	return &o, nil
}

// connBuffer is what a connection reads and writes at a time, in bytes: nearly every
// call of ours is shorter. The more memory stays, the more is left behind before it is
// collected.
const connBuffer = 4 << 10

// reloadEvery is how long a client of a cluster goes on asking a primary that
// has died, after its replica has taken its place: nothing else makes it look.
const reloadEvery = time.Second

// Client returns a client with Options. It asks nothing yet.
func Client(urls string) (redis.UniversalClient, error) {
	o, err := Options(urls)
	if err != nil {
		return nil, err
	}
	if o.MasterName == "" && len(o.Addrs) > 1 {
		cluster := o.Cluster()
		cluster.ClusterStateReloadInterval = reloadEvery
		return redis.NewClusterClient(cluster), nil
	}
	return redis.NewUniversalClient(o), nil
}

// ofSentinel takes out of the URL of a sentinel which master is meant and the
// sentinel's own password, and leaves that of a Redis. Any other URL stays.
func ofSentinel(text string) (rest, master, password string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis-sentinel" && u.Scheme != "rediss-sentinel" {
		return text, "", "", nil
	}
	parameters := u.Query()
	if master = parameters.Get("master"); master == "" {
		return "", "", "", errors.New("which master a sentinel watches is missing: redis-sentinel://host:26379?master=name")
	}
	password = parameters.Get("sentinel_password")
	parameters.Del("master")
	parameters.Del("sentinel_password")
	u.Scheme, u.RawQuery = strings.TrimSuffix(u.Scheme, "-sentinel"), parameters.Encode()
	return u.String(), master, password, nil
}

// patience is how long Redis may take to answer: a shopper is told that it
// does not while he still waits. A rebuild of a large event is given longer.
const patience = 1500 * time.Millisecond

func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, patience)
}

//go:embed number.lua
var numberLua string

//go:embed seats.lua
var seatsLua string

// script is one verb: its Lua behind the words it shares with others.
type script struct {
	verb string
	lua  *redis.Script
}

func newScript(verb string, lua ...string) script {
	return script{verb: verb, lua: redis.NewScript(numberLua + strings.Join(lua, ""))}
}

// reply is what a script returned: a word and what goes with it.
type reply struct {
	word string
	rest []any
}

// text returns the k-th value behind the word as a string.
func (r reply) text(k int) string {
	s, _ := r.rest[k].(string)
	return s
}

// texts returns the values from the k-th on, or those of a list in it.
func texts(values []any) []string {
	out := make([]string, len(values))
	for k, v := range values {
		out[k], _ = v.(string)
	}
	return out
}

// millis reads a time a script returned, as an integer or as text.
func millis(v any) (time.Time, error) {
	switch v := v.(type) {
	case int64:
		return time.UnixMilli(v).UTC(), nil
	case string:
		ms, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("time in a basket: %w", err)
		}
		return time.UnixMilli(ms).UTC(), nil
	default:
		return time.Time{}, fmt.Errorf("time in a basket is %v", v)
	}
}

// errCold says that the event has no number: its keys are not there.
var errCold = errors.New("holds: event is cold")

// run runs a script. Its error is errCold, or of Redis.
func (s *Store) run(ctx context.Context, sc script, keys []string, args ...any) (reply, error) {
	if sc.lua != rebuildScript.lua {
		var cancel context.CancelFunc
		ctx, cancel = patient(ctx)
		defer cancel()
	}
	start := time.Now()
	values, err := sc.lua.Run(ctx, s.rdb, keys, args...).Slice()
	s.metrics.took(sc.verb, time.Since(start))
	if err != nil {
		return reply{}, translate(sc.verb, err)
	}
	r := reply{rest: values[1:]}
	r.word, _ = values[0].(string)
	if r.word == "cold" {
		return reply{}, errCold
	}
	return r, nil
}

// peek reads which seats of r somebody has; none when only the script can
// answer: the event is cold, or the token has a basket already.
func (s *Store) peek(ctx context.Context, r TakeRequest) ([]int, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	keys := append(make([]string, 0, 2+len(r.Seats)), seatmap.SeqKey(r.Event), seatmap.BasketKey(r.Event, r.Token))
	start := time.Now()
	values, err := s.rdb.MGet(ctx, holdKeys(keys, r.Event, r.Seats)...).Result()
	s.metrics.took("peek", time.Since(start))
	if err != nil {
		return nil, translate("take", err)
	}
	if values[0] == nil || values[1] != nil {
		return nil, nil
	}
	var gone []int
	for k, holder := range values[2:] {
		if holder != nil {
			gone = append(gone, r.Seats[k])
		}
	}
	return gone, nil
}

// anyTaken reads whether somebody has one of the seats; of a cold event nothing
// can be said.
func (s *Store) anyTaken(ctx context.Context, event string, seats []int) (bool, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	values, err := s.rdb.MGet(ctx, holdKeys([]string{seatmap.SeqKey(event)}, event, seats)...).Result()
	if err != nil {
		return false, translate("sample", err)
	}
	if values[0] == nil {
		return false, errCold
	}
	return slices.ContainsFunc(values[1:], func(holder any) bool { return holder != nil }), nil
}

// revoked reads whether a pass is over before its time.
func (s *Store) revoked(ctx context.Context, event, pass string) (bool, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	err := s.rdb.ZScore(ctx, seatmap.RevokedKey(event), pass).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, translate("revoked", err)
	}
	return true, nil
}

// stored reads a basket as it is stored. Its error is errCold,
// seatmap.ErrNoBasket, or of Redis.
func (s *Store) stored(ctx context.Context, event, token string) (string, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	values, err := s.rdb.MGet(ctx, seatmap.SeqKey(event), seatmap.BasketKey(event, token)).Result()
	switch {
	case err != nil:
		return "", translate("basket", err)
	case values[0] == nil:
		return "", errCold
	case values[1] == nil:
		return "", seatmap.ErrNoBasket
	}
	return texts(values)[1], nil
}

// holders reads the baskets that hold one of the seats, and those of tokens,
// each once. Of one that cannot be read the seats count until its hold ends.
func (s *Store) holders(ctx context.Context, event string, seats []int, tokens []string) ([]seatmap.Basket, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	for part := range slices.Chunk(seats, 1000) {
		holders, err := s.rdb.MGet(ctx, holdKeys(nil, event, part)...).Result()
		if err != nil {
			return nil, translate("spend", err)
		}
		for _, holder := range texts(holders) {
			if holder != "" && holder != seatmap.SoldMark && holder != seatmap.ClosedMark {
				tokens = append(tokens, holder)
			}
		}
	}
	var baskets []seatmap.Basket
	err := s.eachBasket(ctx, event, unique(tokens), func(b seatmap.Basket, _ string) { baskets = append(baskets, b) })
	return baskets, err
}

// eachBasket calls f with baskets and their bodies as they are stored; those
// that are not there or cannot be read are passed over.
func (s *Store) eachBasket(ctx context.Context, event string, tokens []string, f func(b seatmap.Basket, body string)) error {
	ctx, cancel := patient(ctx)
	defer cancel()
	for part := range slices.Chunk(tokens, 1000) {
		keys := make([]string, len(part))
		for k, token := range part {
			keys[k] = seatmap.BasketKey(event, token)
		}
		values, err := s.rdb.MGet(ctx, keys...).Result()
		if err != nil {
			return translate("baskets", err)
		}
		for k, value := range values {
			stored, there := value.(string)
			if !there {
				continue
			}
			b, body, err := parseBasket(event, part[k], stored)
			if err != nil {
				s.log.WarnContext(ctx, "a basket is passed over", "err", err)
				continue
			}
			f(b, body)
		}
	}
	return nil
}

// numbers reads the number of an event's last change and of its last reset; 0
// for one that is not there.
func (s *Store) numbers(ctx context.Context, event string) (last, reset int64, err error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	values, err := s.rdb.MGet(ctx, seatmap.SeqKey(event), seatmap.ResetKey(event)).Result()
	if err != nil {
		return 0, 0, translate("rebuild", err)
	}
	read := texts(values)
	last, _ = strconv.ParseInt(read[0], 10, 64)
	reset, _ = strconv.ParseInt(read[1], 10, 64)
	return last, reset, nil
}

// Shown returns the map of an event and the places left as they were announced
// last; nil when the event is cold.
func (s *Store) Shown(ctx context.Context, event string) (seatmap.Map, map[string]int, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	var bits *redis.StringCmd
	var areas *redis.MapStringStringCmd
	_, err := s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Get(ctx, seatmap.SeqKey(event))
		bits, areas = p.Get(ctx, seatmap.MapKey(event)), p.HGetAll(ctx, seatmap.AreasKey(event))
		return nil
	})
	if errors.Is(err, redis.Nil) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, translate("shown", err)
	}
	left := make(map[string]int, len(areas.Val()))
	for area, places := range areas.Val() {
		left[area], _ = strconv.Atoi(places) // a script wrote it
	}
	return seatmap.Map(bits.Val()), left, nil
}

// refusals are the replies of a Redis that works but cannot serve: it starts,
// follows another, has given its slots away, or is full.
var refusals = []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "MOVED", "ASK", "TRYAGAIN", "NOREPLICAS", "MISCONF", "OOM", "BUSY"}

// translate makes an error of the Redis client one of ours. What is not a
// reply of Redis came from the way to it.
func translate(verb string, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", verb, err)
	}
	var answered redis.Error
	if !errors.As(err, &answered) {
		return fmt.Errorf("%s: %w: %w", verb, seatmap.ErrUnavailable, err)
	}
	for _, refusal := range refusals {
		if redis.HasErrorPrefix(err, refusal) {
			return fmt.Errorf("%s: %w: %w", verb, seatmap.ErrUnavailable, err)
		}
	}
	return fmt.Errorf("%s: %w", verb, err)
}
