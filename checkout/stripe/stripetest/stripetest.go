// Package stripetest is a small Stripe for tests: PaymentIntents, refunds and
// disputes that remember what was done to them, which Stripe's own stripe-mock
// does not. What a card does depends on the PaymentMethod (Card…); what happens
// without us, a test does by Change. Events are signed as Stripe signs them and
// sent by the test, in the order and as often as it likes.
package stripetest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"
)

// PaymentMethods, as Stripe calls those for tests. A ConfirmationToken of one is
// called that behind ctoken_.
const (
	CardVisa     = "pm_card_visa"                   // is authorised at once
	CardDeclined = "pm_card_visa_chargeDeclined"    // is declined at once
	CardAsks     = "pm_card_authenticationRequired" // asks its owner first
	Debit        = "pm_sepaDebit"                   // takes a while, and then all of it at once
)

// Intent is a PaymentIntent.
type Intent struct {
	ID, Status, Currency, Method, CaptureMethod, CancellationReason, Error string
	Amount, Received, Refunded                                             int64
	Metadata                                                               map[string]string
	Charge                                                                 string // the last try; "": none
	Disputed                                                               string // how a dispute stands; "": there is none
	CaptureBefore                                                          int64
}

// Refund is one of an Intent.
type Refund struct {
	ID, Intent, Status string
	Amount             int64
	Metadata           map[string]string
}

// API is Stripe, as far as it goes.
type API struct {
	URL string

	mu      sync.Mutex
	intents map[string]*Intent
	refunds []*Refund
	keys    map[string]answer
	serial  int
	calls   []string
	trouble func(call string) (status int, after bool)
}

type answer struct {
	status int
	body   any
	of     string // the parameters
}

// New starts one that ends with the test.
func New(t testing.TB) *API {
	a := &API{intents: map[string]*Intent{}, keys: map[string]answer{}}
	mux := http.NewServeMux()
	for pattern, do := range map[string]func(*http.Request) (int, any){
		"POST /v1/payment_intents":              a.create,
		"GET /v1/payment_intents/search":        a.search,
		"GET /v1/payment_intents/{id}":          a.of(func(i *Intent) (int, any) { return http.StatusOK, a.shown(i) }),
		"POST /v1/payment_intents/{id}/capture": a.of(a.capture),
		"POST /v1/payment_intents/{id}/cancel":  a.of(a.cancel),
		"GET /v1/refunds":                       a.listRefunds,
		"POST /v1/refunds":                      a.refund,
		"GET /v1/disputes":                      a.listDisputes,
	} {
		mux.HandleFunc(pattern, a.answering(do))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	a.URL = server.URL
	return a
}

// Trouble has calls answered with a status; when after, once they were carried
// out. A call is its method and path.
func (a *API) Trouble(f func(call string) (status int, after bool)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trouble = f
}

// Calls are those that came so far, as "POST /v1/refunds".
func (a *API) Calls() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

// Intents are all there are, oldest first.
func (a *API) Intents() []Intent {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []Intent
	for _, id := range slices.Sorted(maps.Keys(a.intents)) {
		all = append(all, *a.intents[id])
	}
	return all
}

// Change does to the PaymentIntent of an attempt what happens without us, and
// returns it.
func (a *API) Change(t testing.TB, attempt string, f func(*Intent)) Intent {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range a.intents {
		if i.Metadata["attempt"] == attempt {
			f(i)
			return *i
		}
	}
	t.Fatalf("no PaymentIntent of attempt %s", attempt)
	return Intent{}
}

// Event is the body of one about a PaymentIntent, of a type that says what its
// object is.
func (a *API) Event(id, kind string, i Intent) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	object := a.shown(&i)
	switch {
	case strings.HasPrefix(kind, "charge.dispute."):
		object = map[string]any{"object": "dispute", "id": "dp_" + i.ID, "payment_intent": i.ID, "status": i.Disputed}
	case strings.HasPrefix(kind, "charge."):
		object = map[string]any{"object": "charge", "id": i.Charge, "payment_intent": i.ID, "amount_refunded": i.Refunded}
	case strings.HasPrefix(kind, "refund."):
		object = map[string]any{"object": "refund", "id": "re_" + i.ID, "payment_intent": i.ID, "status": "succeeded"}
	}
	body, err := json.Marshal(map[string]any{"object": "event", "id": id, "type": kind, "api_version": "2019-01-01",
		"data": map[string]any{"object": object}})
	if err != nil {
		panic(err) // maps of texts and numbers
	}
	return body
}

// Sign is the header of a body sent at a time, signed with each secret.
func Sign(body []byte, at time.Time, secrets ...string) string {
	header := "t=" + strconv.FormatInt(at.Unix(), 10)
	for _, s := range secrets {
		header += ",v1=" + hex.EncodeToString(webhook.ComputeSignature(at, body, s))
	}
	return header
}

func (a *API) answering(do func(*http.Request) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		call := r.Method + " " + r.URL.Path
		a.calls = append(a.calls, call)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Request-Id", fmt.Sprintf("req_%d", len(a.calls)))
		got := a.answer(w, r, call, do)
		w.WriteHeader(got.status)
		_ = json.NewEncoder(w).Encode(got.body) // a client that went away has no use for it
	}
}

func (a *API) answer(w http.ResponseWriter, r *http.Request, call string, do func(*http.Request) (int, any)) answer {
	if a.trouble != nil {
		if status, after := a.trouble(call); status != 0 {
			got := answer{status, refused("api_error", "", "trouble"), call + r.Form.Encode()}
			if key := r.Header.Get("Idempotency-Key"); after && a.keys[key].status == 0 {
				do(r)
				a.keys[key] = got // from now on that is the answer
			}
			return got
		}
	}
	key := r.Header.Get("Idempotency-Key")
	if before, known := a.keys[key]; known && r.Method == http.MethodPost {
		if before.of != call+r.Form.Encode() {
			return answer{status: http.StatusBadRequest, body: refused("idempotency_error", "", "other parameters")}
		}
		w.Header().Set("Idempotent-Replayed", "true")
		return before
	}
	status, body := do(r)
	got := answer{status, body, call + r.Form.Encode()}
	if r.Method == http.MethodPost {
		a.keys[key] = got
	}
	return got
}

func (a *API) of(do func(*Intent) (int, any)) func(*http.Request) (int, any) {
	return func(r *http.Request) (int, any) {
		i, known := a.intents[r.PathValue("id")]
		if !known {
			return http.StatusNotFound, refused("invalid_request_error", "resource_missing", "no such payment_intent")
		}
		return do(i)
	}
}

func (a *API) create(r *http.Request) (int, any) {
	a.serial++
	amount, err := strconv.ParseInt(r.Form.Get("amount"), 10, 64)
	if err != nil || amount < 50 {
		return http.StatusBadRequest, refused("invalid_request_error", "amount_too_small", "at least 50")
	}
	i := &Intent{ID: fmt.Sprintf("pi_%04d", a.serial), Amount: amount, Currency: r.Form.Get("currency"),
		Method: r.Form.Get("payment_method") + strings.TrimPrefix(r.Form.Get("confirmation_token"), "ctoken_"), CaptureMethod: r.Form.Get("capture_method"),
		Metadata:      map[string]string{"attempt": r.Form.Get("metadata[attempt]"), "booking": r.Form.Get("metadata[booking]")},
		CaptureBefore: time.Now().Add(7 * 24 * time.Hour).Unix()}
	switch i.Method {
	case CardVisa:
		i.Status, i.Charge = "requires_capture", "ch_"+i.ID
	case CardDeclined:
		i.Status, i.Charge, i.Error = "requires_payment_method", "ch_"+i.ID, "generic_decline"
		a.intents[i.ID] = i
		e := refused("card_error", "card_declined", "declined")
		e["error"].(map[string]any)["payment_intent"] = a.shown(i)
		return http.StatusPaymentRequired, e
	case CardAsks:
		i.Status = "requires_action"
	case Debit:
		i.Status = "processing"
	default:
		return http.StatusBadRequest, refused("invalid_request_error", "resource_missing", "no such PaymentMethod")
	}
	a.intents[i.ID] = i
	return http.StatusOK, a.shown(i)
}

func (a *API) capture(i *Intent) (int, any) {
	if i.Status != "requires_capture" {
		return http.StatusBadRequest, refused("invalid_request_error", "payment_intent_unexpected_state", "it is "+i.Status)
	}
	i.Status, i.Received = "succeeded", i.Amount
	return http.StatusOK, a.shown(i)
}

func (a *API) cancel(i *Intent) (int, any) {
	if i.Status == "succeeded" || i.Status == "canceled" || i.Status == "processing" {
		return http.StatusBadRequest, refused("invalid_request_error", "payment_intent_unexpected_state", "it is "+i.Status)
	}
	i.Status = "canceled"
	return http.StatusOK, a.shown(i)
}

func (a *API) search(r *http.Request) (int, any) {
	var found []any
	for _, i := range a.intents {
		if r.Form.Get("query") == "metadata['attempt']:'"+i.Metadata["attempt"]+"'" {
			found = append(found, a.shown(i))
		}
	}
	return http.StatusOK, map[string]any{"object": "search_result", "data": found, "has_more": false}
}

func (a *API) refund(r *http.Request) (int, any) {
	i, known := a.intents[r.Form.Get("payment_intent")]
	amount, err := strconv.ParseInt(r.Form.Get("amount"), 10, 64)
	switch {
	case !known || err != nil:
		return http.StatusNotFound, refused("invalid_request_error", "resource_missing", "no such payment_intent")
	case i.Refunded == i.Received:
		return http.StatusBadRequest, refused("invalid_request_error", "charge_already_refunded", "nothing is left")
	case amount > i.Received-i.Refunded:
		return http.StatusBadRequest, refused("invalid_request_error", "", "more than is left")
	}
	i.Refunded += amount
	got := &Refund{ID: fmt.Sprintf("re_%04d", len(a.refunds)+1), Intent: i.ID, Status: "succeeded", Amount: amount,
		Metadata: map[string]string{"refund": r.Form.Get("metadata[refund]")}}
	a.refunds = append(a.refunds, got)
	return http.StatusOK, got.shown()
}

func (a *API) listRefunds(r *http.Request) (int, any) {
	var found []any
	for _, one := range a.refunds {
		if one.Intent == r.Form.Get("payment_intent") {
			found = append(found, one.shown())
		}
	}
	return http.StatusOK, map[string]any{"object": "list", "data": found, "has_more": false}
}

func (a *API) listDisputes(r *http.Request) (int, any) {
	var found []any
	if i := a.intents[r.Form.Get("payment_intent")]; i != nil && i.Disputed != "" {
		found = append(found, map[string]any{"object": "dispute", "id": "dp_" + i.ID, "status": i.Disputed})
	}
	return http.StatusOK, map[string]any{"object": "list", "data": found, "has_more": false}
}

func refused(kind, code, message string) map[string]any {
	return map[string]any{"error": map[string]any{"type": kind, "code": code, "message": message}}
}

func (r *Refund) shown() map[string]any {
	return map[string]any{"object": "refund", "id": r.ID, "status": r.Status, "amount": r.Amount, "payment_intent": r.Intent, "metadata": r.Metadata}
}

func (a *API) shown(i *Intent) map[string]any {
	o := map[string]any{"object": "payment_intent", "id": i.ID, "status": i.Status, "amount": i.Amount, "currency": i.Currency,
		"amount_received": i.Received, "metadata": i.Metadata, "client_secret": i.ID + "_secret"}
	if i.Status == "requires_capture" {
		o["amount_capturable"] = i.Amount
	}
	if i.Status == "canceled" {
		o["cancellation_reason"] = i.CancellationReason
	}
	if i.Error != "" {
		o["last_payment_error"] = map[string]any{"type": "card_error", "code": "card_declined", "decline_code": i.Error}
	}
	if i.Charge != "" {
		o["latest_charge"] = map[string]any{"object": "charge", "id": i.Charge, "amount_refunded": i.Refunded, "disputed": i.Disputed != "",
			"payment_method_details": map[string]any{"type": "card",
				"card": map[string]any{"fingerprint": "fp_" + i.Method, "capture_before": i.CaptureBefore}}}
	}
	return o
}
