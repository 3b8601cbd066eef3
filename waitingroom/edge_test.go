package waitingroom_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seatcast/internal/devstack/devtest"
	"seatcast/waitingroom"
	"seatcast/web"
)

// edge is an nginx as docs/edge has it, in front of a node that says what came
// through to it.
type edge struct {
	testing.TB
	url   string
	keys  atomic.Pointer[waitingroom.Keys]
	asked atomic.Int64 // for the keys
	down  atomic.Bool  // the node answers nothing
	calls atomic.Int64 // that came through
}

func newEdge(t *testing.T) *edge {
	t.Helper()
	e := &edge{TB: t}
	e.sign(t, "a secret of the tests")
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case e.down.Load():
			w.WriteHeader(http.StatusBadGateway)
		case r.URL.Path == "/v1/passes/keys":
			e.asked.Add(1)
			if r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
				t.Errorf("the keys are asked for with a body of %d bytes, which does not come", r.ContentLength)
			}
			api := web.New(web.Options{Log: quiet})
			waitingroom.NewAPI(waitingroom.New(waitingroom.Options{Keys: e.keys.Load()})).MountPublic(api.Group("/v1"))
			api.ServeHTTP(w, r)
		default:
			e.calls.Add(1)
			body, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.RequestURI(), body)
		}
	}))
	t.Cleanup(node.Close)
	folder, err := filepath.Abs("../docs/edge")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(folder, "nginx.conf"))
	if err != nil {
		t.Fatal(err)
	}
	e.url = devtest.Nginx(t, func(listen string) string {
		conf := string(page)
		for _, c := range [][2]string{
			{"listen 80;", "listen " + listen + ";"}, {"/var/log/nginx/seatcast.log", os.DevNull}, {"/etc/nginx/seatcast/edge.js", filepath.Join(folder, "edge.js")},
			{"/var/cache/nginx/seatcast", "keys"}, {"10.0.0.5:8080", strings.TrimPrefix(node.URL, "http://")}, {"    server 10.0.0.6:8080;\n", ""},
			{"proxy_cache_valid any 10s", "proxy_cache_valid any 1s"}, {"rate=5r/s", "rate=1000r/s"}, {"burst=10 ", "burst=1000 "},
		} {
			if !strings.Contains(conf, c[0]) {
				t.Fatalf("%s is not in the documented configuration", c[0])
			}
			conf = strings.ReplaceAll(conf, c[0], c[1])
		}
		return conf
	}, "http-js").URL()
	return e
}

// sign has the node sign with the key of a secret, and accept those of others.
func (e *edge) sign(t testing.TB, secret string, accepted ...string) *waitingroom.Keys {
	t.Helper()
	k, err := waitingroom.ParseKeys(strings.Join(accepted, ","), secret)
	if err != nil {
		t.Fatal(err)
	}
	e.keys.Store(k)
	return k
}

// session is a token that says it is of a user; the edge does not know whether it is.
func session(user string) string {
	text, _ := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": user}).SignedString([]byte("nobody knows it"))
	return text
}

func edgePass(t testing.TB, k *waitingroom.Keys, event, user string, until time.Time) string {
	t.Helper()
	id := k.TicketOf(event, user).ID
	token, err := k.SignPass(waitingroom.Pass{ID: fmt.Sprintf("%v-%d", id, until.UnixMilli()), Event: event, User: user, Ticket: id, Until: until})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// sends returns the status of an answer, with the code of a problem or where it leads.
func (e *edge) sends(method, path, body string, header ...string) string {
	e.Helper()
	req, err := http.NewRequestWithContext(e.Context(), method, e.url+path, strings.NewReader(body))
	if err != nil {
		e.Fatal(err)
	}
	for n := 0; n < len(header); n += 2 {
		req.Header.Set(header[n], header[n+1])
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		e.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		e.Fatal(err)
	}
	var p struct{ Code string }
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") {
		_ = json.Unmarshal(text, &p)
		text = []byte(p.Code)
	}
	if to := res.Header.Get("Location"); to != "" {
		text = []byte(to)
	}
	return fmt.Sprint(res.StatusCode, " ", string(bytes.TrimSpace(text)))
}

func (e *edge) books(pass, user string) string {
	e.Helper()
	return e.sends("POST", "/v1/bookings/theatre", `{"ticketIds":["a"]}`, "Seatcast-Pass", pass, "Authorization", "Bearer "+session(user))
}

const through = `200 POST /v1/bookings/theatre {"ticketIds":["a"]}`

func TestAnNginxAtTheEdgeLetsGoodPassesThroughAndNoOther(t *testing.T) {
	e := newEdge(t)
	soon := time.Now().Add(time.Hour)
	keys := e.keys.Load()
	good := edgePass(t, keys, "theatre", "ann", soon)
	if got := e.books(good, "ann"); got != through {
		t.Fatalf("a good one: %s", got)
	}
	parts := strings.Split(good, ".")
	segment := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	var head, claims map[string]any
	for n, to := range []*map[string]any{&head, &claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[n])
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	with := func(m map[string]any, name string, v any) map[string]any {
		other := map[string]any{}
		for k, was := range m {
			other[k] = was
		}
		other[name] = v
		return other
	}
	// signed is a pass that somebody else signs in our name.
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(method jwt.SigningMethod, key any, typ string) string {
		token := jwt.NewWithClaims(method, jwt.MapClaims(claims))
		token.Header["typ"], token.Header["kid"] = typ, head["kid"]
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var public []byte
	for _, key := range keys.Public() {
		if public, err = key.Bytes(); err != nil {
			t.Fatal(err)
		}
	}
	place, err := keys.SignPlace(waitingroom.Place{Event: "theatre", Ticket: keys.TicketOf("theatre", "ann"), Number: 1, Issued: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	before := e.calls.Load()
	for what, c := range map[string]struct{ pass, user, want string }{
		"none":                          {"", "ann", "403 pass_required"},
		"nonsense":                      {"let.me.in", "ann", "403 pass_invalid"},
		"an expired one":                {edgePass(t, keys, "theatre", "ann", time.Now().Add(-time.Second)), "ann", "403 pass_expired"},
		"another event's":               {edgePass(t, keys, "derby", "ann", soon), "ann", "403 pass_invalid"},
		"another account's":             {good, "bob", "403 pass_invalid"},
		"alg none":                      {segment(map[string]any{"alg": "none", "typ": head["typ"], "kid": head["kid"]}) + "." + parts[1] + ".", "ann", "403 pass_invalid"},
		"alg none, signed":              {segment(with(head, "alg", "none")) + "." + parts[1] + "." + parts[2], "ann", "403 pass_invalid"},
		"HS256 with the public key":     {signed(jwt.SigningMethodHS256, public, "seatcast-pass+jwt"), "ann", "403 pass_invalid"},
		"another key with our kid":      {signed(jwt.SigningMethodES256, stranger, "seatcast-pass+jwt"), "ann", "403 pass_invalid"},
		"a kid that is nobody's":        {segment(with(head, "kid", "AAAAAAAA")) + "." + parts[1] + "." + parts[2], "ann", "403 pass_invalid"},
		"a place":                       {place, "ann", "403 pass_invalid"},
		"a longer time":                 {parts[0] + "." + segment(with(claims, "exp", soon.Add(2*time.Hour).Unix())) + "." + parts[2], "ann", "403 pass_invalid"},
		"another account written in":    {parts[0] + "." + segment(with(claims, "sub", "bob")) + "." + parts[2], "bob", "403 pass_invalid"},
		"no signature":                  {parts[0] + "." + parts[1] + ".", "ann", "403 pass_invalid"},
		"a changed signature":           {good[:len(good)-4] + "AAAA", "ann", "403 pass_invalid"},
		"a pass that is far too long":   {good + strings.Repeat("A", 4000), "ann", "403 pass_invalid"},
		"a head that is no object":      {segment("x") + "." + parts[1] + "." + parts[2], "ann", "403 pass_invalid"},
		"a pass with a time in letters": {parts[0] + "." + segment(with(claims, "exp", "9999999999")) + "." + parts[2], "ann", "403 pass_invalid"},
	} {
		if got := e.books(c.pass, c.user); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
	if got := e.calls.Load(); got != before {
		t.Errorf("%d of them came through", got-before)
	}
}

func TestAnNginxAtTheEdgeGuardsWhatItIsToldTo(t *testing.T) {
	e := newEdge(t)
	now := time.Now()
	pass := edgePass(t, e.keys.Load(), "theatre", "ann", now.Add(time.Hour))
	late := edgePass(t, e.keys.Load(), "theatre", "ann", now.Add(-10*time.Minute))
	long := edgePass(t, e.keys.Load(), "theatre", "ann", now.Add(-2*time.Hour))
	hers := "Bearer " + session("ann")
	for _, c := range []struct {
		method, path string
		header       []string
		want         string
	}{
		{"PUT", "/v1/bookings/theatre.abc/seats", nil, "403 pass_required"},
		{"PUT", "/v1/bookings/theatre.abc/seats", []string{"Seatcast-Pass", pass, "Authorization", hers}, "200 PUT /v1/bookings/theatre.abc/seats"},
		{"GET", "/v1/bookings/theatre.abc", nil, "200 GET /v1/bookings/theatre.abc"},                   // to pay none is needed
		{"POST", "/v1/bookings/theatre.abc/payment", nil, "200 POST /v1/bookings/theatre.abc/payment"}, // nor for this
		{"POST", "/v1/bookings/derby", nil, "200 POST /v1/bookings/derby"},                             // has no room
		{"GET", "/v1/events/theatre/seatmap?since=5", nil, "403 pass_required"},
		{"GET", "/v1/events/theatre/seatmap?since=5", []string{"Seatcast-Pass", pass, "Authorization", hers}, "200 GET /v1/events/theatre/seatmap?since=5"},
		{"POST", "/v1/events/theatre/live-ticket", []string{"Seatcast-Pass", pass}, "403 pass_invalid"}, // whose is it?
		{"GET", "/v1/events/derby/seatmap", nil, "200 GET /v1/events/derby/seatmap"},
		{"POST", "/v1/bookings/the%61tre", nil, "403 pass_required"},
		{"POST", "/v1//bookings/theatre", nil, "403 pass_required"},
		{"GET", "/events/theatre", nil, "302 /queue/theatre"},
		{"GET", "/events/theatre", []string{"Cookie", "seatcast-pass=" + pass}, "200 GET /events/theatre"},
		{"GET", "/events/theatre", []string{"Cookie", "seatcast-pass=" + late}, "200 GET /events/theatre"}, // to pay
		{"GET", "/events/theatre", []string{"Cookie", "seatcast-pass=" + long}, "302 /queue/theatre"},
		{"GET", "/events/derby", []string{"Cookie", "seatcast-pass=" + pass}, "200 GET /events/derby"},
		{"GET", "/queue/theatre", nil, "200 GET /queue/theatre"},
		{"GET", "/_edge/keys", nil, "404"},
		{"GET", "/metrics", nil, "404"},
	} {
		if got := e.sends(c.method, c.path, "", c.header...); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s with %v: %s, want %s", c.method, c.path, c.header, got, c.want)
		}
	}
}

func TestAnNginxAtTheEdgeAsksForKeysAlmostNever(t *testing.T) {
	e := newEdge(t)
	old := e.keys.Load()
	pass := edgePass(t, old, "theatre", "ann", time.Now().Add(time.Hour))
	for range 50 {
		if got := e.books(pass, "ann"); got != through {
			t.Fatalf("%s", got)
		}
	}
	if n := e.asked.Load(); n != 1 {
		t.Errorf("for 50 passes the keys were asked for %d times", n)
	}

	var raw []byte
	for _, key := range old.Public() {
		var err error
		if raw, err = key.Bytes(); err != nil {
			t.Fatal(err)
		}
	}
	young := e.sign(t, "another secret", "public:"+base64.StdEncoding.EncodeToString(raw))
	fresh := edgePass(t, young, "theatre", "bob", time.Now().Add(time.Hour))
	eventually(t, "a pass of the key that is new is good", func() bool { return e.books(fresh, "bob") == through })
	if got := e.books(pass, "ann"); got != through {
		t.Errorf("one of the key before: %s", got)
	}
	asked := e.asked.Load()
	stranger := edgePass(t, e.sign(t, "a stranger's secret"), "theatre", "eve", time.Now().Add(time.Hour))
	e.keys.Store(young)
	begun := time.Now()
	for range 100 {
		if got := e.books(stranger, "eve"); got != "403 pass_invalid" {
			t.Fatalf("a stranger's: %s", got)
		}
	}
	if n, most := e.asked.Load()-asked, 2+int64(time.Since(begun).Seconds()); n > most {
		t.Errorf("for 100 passes of a stranger the keys were asked for %d times in %v", n, time.Since(begun))
	}

	e.down.Store(true)
	if got := e.books(pass, "ann"); !strings.HasPrefix(got, "502") {
		t.Errorf("a good pass while no node answers: %s", got)
	}
	if got := e.books(strings.Replace(pass, ".", "x.", 1), "ann"); got != "403 pass_invalid" {
		t.Errorf("a bad one while no node answers: %s", got)
	}
}

func TestAnNginxAtTheEdgeLetsNobodyInWithoutKeys(t *testing.T) {
	e := newEdge(t)
	pass := edgePass(t, e.keys.Load(), "theatre", "ann", time.Now().Add(time.Hour))
	e.down.Store(true)
	if got := e.books(pass, "ann"); got != "503 store_unavailable" {
		t.Errorf("while no node has said its keys: %s", got)
	}
}
