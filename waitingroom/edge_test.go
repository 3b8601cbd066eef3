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
	"os/exec"
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

// edge is an nginx as docs/edge has it installed, in front of a node that says what came
// through to it.
type edge struct {
	testing.TB
	url   string
	keys  atomic.Pointer[waitingroom.Keys]
	asked atomic.Int64 // for the keys
	down  atomic.Bool  // the node answers nothing
	calls atomic.Int64 // that came through
}

// newEdge changes what docs/edge/nginx.conf says, in pairs of what there is and
// what is to be.
func newEdge(t *testing.T, changed ...[2]string) *edge {
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
	changed = append(changed, [2]string{"10.0.0.5:8080", strings.TrimPrefix(node.URL, "http://")}, [2]string{"    server 10.0.0.6:8080;\n", ""})
	e.url = devtest.Nginx(t, func(listen string) string { return installed(t, listen, changed) }, "http-js").URL()
	return e
}

// installed is what an nginx of Debian's reads inside http{} once docs/edge/README.md
// has been followed, on a machine of its own below a folder.
func installed(t *testing.T, listen string, changed [][2]string) string {
	t.Helper()
	root := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, above := range []string{filepath.Dir(root), root} {
		must(os.Chmod(above, 0o755)) // nginx is of another account when root tests
	}
	for _, folder := range []string{"etc/nginx/conf.d", "etc/nginx/sites-available", "etc/nginx/sites-enabled", "var/lib/nginx", "var/log/nginx"} { // and no /var/cache/nginx
		must(os.MkdirAll(filepath.Join(root, folder), 0o755))
	}
	for _, folder := range []string{"lib", "log"} {
		must(os.Chmod(filepath.Join(root, "var", folder, "nginx"), 0o777)) // there is no master of root's
	}
	welcome := filepath.Join(root, "etc/nginx/sites-available/default")
	must(os.WriteFile(welcome, []byte("server { listen "+listen+" default_server; server_name _; location / { return 200 \"Welcome to nginx!\"; } }\n"), 0o644))
	must(os.Symlink(welcome, filepath.Join(root, "etc/nginx/sites-enabled/default")))

	readme, err := os.ReadFile("../docs/edge/README.md")
	must(err)
	_, commands, _ := strings.Cut(string(readme), "```bash\napt-get install ")
	_, commands, _ = strings.Cut(commands, "\n")
	commands, _, _ = strings.Cut(commands, "```")
	follow := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(commands, "/etc/nginx", root+"/etc/nginx"))
	follow.Dir = "../docs/edge"
	if out, err := follow.CombinedOutput(); err != nil || commands == "" {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}

	file := filepath.Join(root, "etc/nginx/conf.d/seatcast.conf")
	text, err := os.ReadFile(file)
	must(err)
	conf := string(text)
	for _, c := range append([][2]string{{"listen 80;", "listen " + listen + ";"}, {" /etc/", " " + root + "/etc/"}, {" /var/", " " + root + "/var/"}}, changed...) {
		if !strings.Contains(conf, c[0]) {
			t.Fatalf("%s is not in the documented configuration", c[0])
		}
		conf = strings.ReplaceAll(conf, c[0], c[1])
	}
	must(os.WriteFile(file, []byte(conf), 0o644))
	return fmt.Sprintf("    include %[1]s/etc/nginx/conf.d/*.conf;\n    include %[1]s/etc/nginx/sites-enabled/*;", root)
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

// asks sends a request, to a host that is named in no configuration.
func (e *edge) asks(method, path, body string, header ...string) (res *http.Response, text []byte) {
	e.Helper()
	req, err := http.NewRequestWithContext(e.Context(), method, e.url+path, strings.NewReader(body))
	if err != nil {
		e.Fatal(err)
	}
	req.Host = "tickets.example"
	for n := 0; n < len(header); n += 2 {
		req.Header.Set(header[n], header[n+1])
	}
	res, err = (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		e.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if text, err = io.ReadAll(res.Body); err != nil {
		e.Fatal(err)
	}
	return res, text
}

// sends returns the status of an answer, with the code of a problem or where it leads.
func (e *edge) sends(method, path, body string, header ...string) string {
	e.Helper()
	res, text := e.asks(method, path, body, header...)
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

func TestAnNginxAtTheEdgeInstalledAsDocumentedOnDebianAnswersInPlaceOfItsWelcomePage(t *testing.T) {
	e := newEdge(t)
	if got := e.sends("GET", "/queue/theatre", ""); got != "200 GET /queue/theatre" {
		t.Errorf("the page of the line is %s", got)
	}
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
		{"GET", "/v1/events/theatre/seatmap?ticket=", nil, "403 pass_required"},
		{"GET", "/v1/events/theatre/seatmap?ticket=AAAB&since=5", nil, "200 GET /v1/events/theatre/seatmap?ticket=AAAB&since=5"}, // a node tells whether it is good
		{"GET", "/v1/events/theatre/seatmap?ticket=AAAB", []string{"Seatcast-Pass", late, "Authorization", hers}, "200 GET /v1/events/theatre/seatmap?ticket=AAAB"},
		{"POST", "/v1/events/theatre/live-ticket?ticket=AAAB", nil, "403 pass_required"},
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

func TestAnNginxAtTheEdgeSaysAsAProblemThatAPassIsShownTooOften(t *testing.T) {
	e := newEdge(t, [2]string{"rate=5r/s", "rate=1r/m"}) // however slow the machine is
	pass := edgePass(t, e.keys.Load(), "theatre", "ann", time.Now().Add(time.Hour))
	var res *http.Response
	var text []byte
	eventually(t, "a pass that is shown again and again is refused", func() bool {
		res, text = e.asks("POST", "/v1/bookings/theatre", `{"ticketIds":["a"]}`, "Seatcast-Pass", pass, "Authorization", "Bearer "+session("ann"))
		return res.StatusCode != http.StatusOK
	})
	if want := `{"type":"about:blank","title":"Too Many Requests","status":429,"code":"too_many_requests"`; res.StatusCode != 429 || !strings.HasPrefix(string(text), want) {
		t.Errorf("%s: %s", res.Status, text)
	}
	if kind, again := res.Header.Get("Content-Type"), res.Header.Get("Retry-After"); kind != "application/problem+json" || again != "1" {
		t.Errorf("it is %s, and to be asked again after %q", kind, again)
	}
}

func TestAnNginxAtTheEdgeAsksForKeysAlmostNever(t *testing.T) {
	e := newEdge(t, [2]string{"proxy_cache_valid any 10s", "proxy_cache_valid any 1s"}, [2]string{"rate=5r/s", "rate=1000r/s"}, [2]string{"burst=10 ", "burst=1000 "})
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
