package tickets_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seatcast/checkout/tickets"
	"seatcast/web"
)

// reply is an answer at the door.
type reply struct {
	status int
	Code   string
	Result string
	At     time.Time
	Gate   string
	Ticket tickets.Ticket
	First  *tickets.Admission
	Keys   []struct{ Kty, Crv, Use, Kid, X string }
}

// call is one of an operator.
func (h *house) call(method, path, body string, header ...string) (r reply) {
	h.t.Helper()
	e := web.New(web.Options{Log: slog.New(slog.DiscardHandler)})
	v1 := e.Group("/v1")
	h.Mount(v1)
	h.MountAdmin(v1.Group("/admin", web.AsOperator("ann")))
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, req)
	var p struct {
		Status json.RawMessage
		*reply
	}
	p.reply = &r
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		h.t.Fatalf("%v in %s", err, w.Body)
	}
	r.status = w.Code
	return r
}

func (h *house) body(payload, more string) string { return `{"payload":"` + payload + `"` + more + `}` }

func TestTheDoorAnswersWhatBecameOfATicket(t *testing.T) {
	h := setup(t)
	seat := h.keys.Sign("tk_seat", event)
	first := h.call(http.MethodPost, web.ScanPath, h.body(seat, `,"event":"opera","gate":"north"`), "Idempotency-Key", "k")
	if first.status != http.StatusOK || first.Result != "admitted" || first.Gate != "north" || first.Ticket.Label != "5" || time.Since(first.At) > time.Minute {
		t.Errorf("first %+v", first)
	}
	if again := h.call(http.MethodPost, web.ScanPath, h.body(`\n`+seat+`\r\n`, ``), "Idempotency-Key", "k"); again.status != http.StatusOK || !again.At.Equal(first.At) {
		t.Errorf("its repeat %+v", again)
	}
	if used := h.call(http.MethodPost, web.ScanPath, h.body(seat, ``)); used.status != http.StatusConflict || used.Code != "ticket_used" || used.Result != "used" ||
		used.First == nil || !used.First.At.Equal(first.At) || used.First.Gate != "north" || used.First.By != "ann" || used.Ticket.ID != "tk_seat" {
		t.Errorf("the next %+v", used)
	}
	if undone := h.call(http.MethodPost, web.ScanPath+"/undo", `{"ticket":"tk_seat","reason":"sent out again"}`); undone.status != http.StatusOK || undone.Result != "undone" || !undone.At.Equal(first.At) {
		t.Errorf("undone %+v", undone)
	}
	if anew := h.call(http.MethodPost, web.ScanPath, h.body(seat, ``)); anew.status != http.StatusOK || !anew.At.After(first.At) {
		t.Errorf("and in again %+v", anew)
	}
	for body, want := range map[string]struct {
		status int
		code   string
	}{
		h.body(h.keys.Sign("tk_void", event), ``):                   {http.StatusConflict, "ticket_void"},
		h.body(h.keys.Sign("tk_early", event), ``):                  {http.StatusConflict, "ticket_pending"},
		h.body(h.keys.Sign("tk_floor", event), `,"event":"derby"`):  {http.StatusConflict, "wrong_event"},
		h.body(h.keys.Sign("tk_none", event), ``):                   {http.StatusUnprocessableEntity, "ticket_unknown"},
		h.body(keysOf(t, seed("x")).Sign("tk_floor", event), ``):    {http.StatusUnprocessableEntity, "ticket_key_unknown"},
		h.body(strings.Replace(seat, "tk_seat", "tk_floor", 1), ``): {http.StatusUnprocessableEntity, "ticket_forged"},
		h.body("tk_floor", ``):                                      {http.StatusUnprocessableEntity, "ticket_forged"},
		h.body(strings.Repeat("A", 5000), ``):                       {http.StatusUnprocessableEntity, "ticket_forged"},
		h.body(" ", ``):                                             {http.StatusBadRequest, "bad_request"},
		`{}`:                                                        {http.StatusBadRequest, "bad_request"},
		`{"ticket":"tk_seat"}`:                                      {http.StatusBadRequest, "bad_json"},
		``:                                                          {http.StatusBadRequest, "bad_json"},
		h.body(seat, `,"gate":"`+strings.Repeat("g", 61)+`"`):       {http.StatusBadRequest, "bad_request"},
		h.body(seat, `,"gate":"a\u0000b"`):                          {http.StatusBadRequest, "bad_request"},
		h.body(seat, `,"event":"`+strings.Repeat("e", 65)+`"`):      {http.StatusBadRequest, "bad_request"},
	} {
		if r := h.call(http.MethodPost, web.ScanPath, body); r.status != want.status || r.Code != want.code {
			t.Errorf("%.80s: %d %s, want %d %s", body, r.status, r.Code, want.status, want.code)
		}
	}
	for body, want := range map[string]string{
		`{"ticket":"tk_floor","reason":"why not"}`: "ticket_unused", `{"ticket":"tk_none","reason":"why not"}`: "ticket_unknown",
		`{"ticket":"tk_seat"}`: "bad_request", `{"ticket":"","reason":"x"}`: "bad_request", `{"ticket":"a\u0000","reason":"x"}`: "bad_request",
		`{"ticket":"tk_seat","reason":"` + strings.Repeat("x", 501) + `"}`: "bad_request",
	} {
		if r := h.call(http.MethodPost, web.ScanPath+"/undo", body); r.Code != want {
			t.Errorf("undo %.60s: %d %s, want %s", body, r.status, r.Code, want)
		}
	}
}

func TestThePublicKeysAreThoseTicketsVerifyWith(t *testing.T) {
	h := setup(t)
	h.Door = tickets.NewDoor(h.pool, keysOf(t, seed("b")+","+seed("a")))
	r := h.call(http.MethodGet, "/v1/tickets/keys", "")
	if r.status != http.StatusOK || len(r.Keys) != 2 {
		t.Fatalf("%+v", r)
	}
	for n, letter := range []string{"b", "a"} {
		k := r.Keys[n]
		parts := strings.Split(keysOf(t, seed(letter)).Sign("tk_seat", event), ".")
		signature, err := base64.RawURLEncoding.DecodeString(parts[4])
		if err != nil {
			t.Fatal(err)
		}
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || k.Kty != "OKP" || k.Crv != "Ed25519" || k.Use != "sig" || k.Kid != parts[3] || !ed25519.Verify(x, []byte(strings.Join(parts[:4], ".")), signature) {
			t.Errorf("key %d is %+v, %v", n, k, err)
		}
	}
}
