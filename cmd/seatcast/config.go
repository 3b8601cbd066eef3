package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"seatcast/checkout/stripe"
	"seatcast/checkout/tickets"
	"seatcast/holds"
	"seatcast/waitingroom"
	"seatcast/web"
)

// Config is every knob of a serving process, read from the environment. The
// help tag is what `seatcast serve --help` prints.
type Config struct {
	Addr  string   `env:"ADDR" envDefault:":8080" help:"address to listen on"`
	Roles []string `env:"ROLES" envDefault:"api,hub,worker" help:"what this process does: api (bookings, checkout), hub (live maps), worker (jobs, mirror)"`

	Postgres string `env:"POSTGRES_URL" secret:"url" help:"postgres://… (required)"`
	Redis    string `env:"REDIS_URL" secret:"url" help:"redis://…, rediss://… or unix://…; of a cluster several, of sentinels redis-sentinel://…?master=name of each, separated by commas (required)"`
	NATS     string `env:"NATS_URL" secret:"url" help:"nats://…, several separated by commas (required)"`

	ServerKey string `env:"SERVER_KEY" secret:"yes" help:"at least 32 characters, the same on every node: booking ids are derived from it, and it signs the tickets of guarded maps (required)"`
	TicketKey string `env:"TICKET_KEY" secret:"yes" help:"what the tickets that are sold are signed with: ed25519:<base64 of a 32-byte seed>. After commas others that are accepted, so or as public:<base64 of the public key> (default: derived from the server key)"`

	PassKey string `env:"PASS_KEY" secret:"yes" help:"what places in waiting rooms and the passes that end them are signed with: es256:<base64 of a 32-byte private key on P-256>. After commas others that are accepted, so or as public:<base64 of the public key> (default: derived from the server key)"`

	JWKSURL    string `env:"SESSION_JWKS_URL" secret:"url" help:"where your login publishes its keys; needs issuer and audience"`
	SessionKey string `env:"SESSION_KEY" secret:"yes" help:"a local key instead of a JWKS URL: hs256:<base64 of 32 bytes or more> or ed25519:<base64 of the seed>"`
	Issuer     string `env:"SESSION_ISSUER" help:"iss a session token must carry"`
	Audience   string `env:"SESSION_AUDIENCE" help:"aud a session token must carry"`
	Claims     string `env:"SESSION_CLAIMS" envDefault:"user=sub" help:"claim map: which claim of your tokens is the account and, as user=sub,roles=<claim>, which one lists roles: a JSON array of strings, or one string with spaces between; whose roles have operator may use /v1/admin, scanner of that only the scan of tickets"`

	Sandbox           bool   `env:"SANDBOX" envDefault:"false" help:"offer the built-in payment provider that moves no money"`
	SandboxSecret     string `env:"SANDBOX_SECRET" secret:"yes" help:"what the sandbox signs its webhooks with, at least 16 characters (required with SEATCAST_SANDBOX)"`
	SandboxWebhookURL string `env:"SANDBOX_WEBHOOK_URL" secret:"url" help:"where the sandbox sends them: an api node, such as http://10.0.0.5:8080 (default: this process, when it is one)"`

	SandboxWithin time.Duration `env:"SANDBOX_WITHIN" envDefault:"0s" help:"nothing the sandbox's cards do takes longer, for trials of a sale with short holds; 0s: as long as each is said to take"`

	StripeSecretKey      string   `env:"STRIPE_SECRET_KEY" secret:"yes" help:"take payments through Stripe: its secret key, sk_… or a restricted one, rk_…; Stripe then takes every new payment, and the sandbox finishes its own"`
	StripeWebhookSecrets []string `env:"STRIPE_WEBHOOK_SECRETS" secret:"yes" help:"what Stripe signs its webhooks with, whsec_…; two while one is replaced (required with SEATCAST_STRIPE_SECRET_KEY)"`
	StripePublishableKey string   `env:"STRIPE_PUBLISHABLE_KEY" help:"pk_…: the page asks for cards with Stripe's own element, and may load its script"`
	StripeMethods        []string `env:"STRIPE_METHODS" envDefault:"card" help:"payment method types of Stripe to offer"`
	StripeAtOnce         string   `env:"STRIPE_AT_ONCE" envDefault:"exclude" help:"of these, what can only be captured at once, such as ideal: exclude leaves it out, refund offers it and gives the money back when the seats are gone"`
	StripeReturnURL      string   `env:"STRIPE_RETURN_URL" help:"where a means of payment that leads to another site comes back to; those that do are refused without it"`
	StripeAPI            string   `env:"STRIPE_API" secret:"url" help:"another address of Stripe's API, such as a stripe-mock's"`

	WebhooksHTTP    bool          `env:"WEBHOOKS_HTTP" envDefault:"false" help:"let outgoing webhooks be sent to http:// too: what they tell of shoppers is then read by whoever is on the way"`
	WebhooksPrivate bool          `env:"WEBHOOKS_PRIVATE" envDefault:"false" help:"let outgoing webhooks be sent to addresses that are not public: private, loopback, link-local"`
	WebhooksKeep    time.Duration `env:"WEBHOOKS_KEEP" envDefault:"720h" help:"how long outgoing webhooks and every try to deliver them are kept"`

	Gate string `env:"GATE" envDefault:"on" help:"on: a request for a seat of a hot event that is known to be taken is refused from memory; off: Redis is asked for every request"`

	HubSessions    int           `env:"HUB_SESSIONS" envDefault:"0" help:"sessions (streams and sockets) this process holds at most; 0: as many as its file descriptors allow, up to 50,000; -1: no limit"`
	HubRate        int           `env:"HUB_RATE" envDefault:"5000" help:"sessions opened a second at most; -1: no limit"`
	HubPerAddress  int           `env:"HUB_PER_ADDRESS" envDefault:"-1" help:"sessions of one address at most; -1: no limit, because a stadium's wifi, a carrier or a proxy that tells no address of its clients is one address"`
	HubTopics      int           `env:"HUB_TOPICS" envDefault:"16" help:"maps one WebSocket watches at most"`
	HubMessages    int           `env:"HUB_MESSAGES" envDefault:"20" help:"messages a second from one WebSocket, three times as many at once; -1: no limit"`
	HubMessageSize int           `env:"HUB_MESSAGE_SIZE" envDefault:"4096" help:"bytes of one of them at most"`
	HubMaxAge      time.Duration `env:"HUB_MAX_AGE" envDefault:"30m" help:"longest life of a session; each ends at random after 80 to 100 % of it and comes back, so that nodes fill evenly"`
	HubEngine      string        `env:"HUB_ENGINE" envDefault:"auto" help:"auto: sessions cost no goroutine and no buffer where that can be; portable: never so"`

	QueuePerAccount int           `env:"QUEUE_PER_ACCOUNT" envDefault:"5" help:"calls of one's own of a waiting room (join, look, leave, challenge, claim) a second from one account, six times as many at once; -1: no limit"`
	QueuePerAddress int           `env:"QUEUE_PER_ADDRESS" envDefault:"1000" help:"the same from one address, five times as many at once; -1: no limit, as for a proxy that tells no address of its clients"`
	QueueSuspect    int           `env:"QUEUE_SUSPECT" envDefault:"3000" help:"an account refused so often within a minute for its own calls is suspected: it waits, and is never let in; -1: only who an operator suspects"`
	QueueWait       time.Duration `env:"QUEUE_WAIT" envDefault:"30s" help:"how long one waits who would join without a proof of work where one is asked for"`

	TrustedProxies []string `env:"TRUSTED_PROXIES" help:"networks, such as 203.0.113.0/24, of proxies with public addresses: what they say in X-Forwarded-For of where a request comes from is believed, as it is of private addresses"`

	Origins  []string      `env:"ORIGINS" help:"other sites whose pages may call the API, stream and open a WebSocket: host patterns, or * for any"`
	Drain    time.Duration `env:"DRAIN" envDefault:"10s" help:"how long a stopping process takes at most to send its watchers elsewhere; requests get ten seconds more"`
	LogLevel string        `env:"LOG_LEVEL" envDefault:"info" help:"debug, info, warn or error"`
}

const envPrefix = "SEATCAST_"

var roleNames = []string{"api", "hub", "worker"}

// defaultConfig is what an empty environment says.
func defaultConfig() (Config, error) {
	return env.ParseAsWithOptions[Config](env.Options{Prefix: envPrefix, Environment: map[string]string{}})
}

// loadConfig reads the environment and says everything that is wrong with it
// at once, by the names of the variables. No error repeats a value that may
// hold a secret.
func loadConfig() (Config, error) {
	c, err := env.ParseAsWithOptions[Config](env.Options{Prefix: envPrefix})
	unread := faults{}
	var all env.AggregateError
	if !errors.As(err, &all) {
		return c, errors.Join(err, c.validate())
	}
	for _, one := range all.Errors {
		var parse env.ParseError // of a knob that is no text: none of those is secret
		if !errors.As(one, &parse) {
			return c, fmt.Errorf("configuration: %w", one)
		}
		f, _ := reflect.TypeFor[Config]().FieldByName(parse.Name)
		unread.add(f.Tag.Get("env"), "must be %s", kindOf(f.Type))
	}
	// What the knobs that could not be read would have said is not judged.
	for _, f := range c.faults() {
		if !unread.has(f.knob) {
			unread = append(unread, f)
		}
	}
	return c, unread.err()
}

// kindOf says how a knob that is no text is written.
func kindOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a time with its unit, such as 500ms, 30s or 2h"
	case t.Kind() == reflect.Bool:
		return "true or false"
	default:
		return "a whole number"
	}
}

// unknownSettings are the variables with our prefix that mean nothing to a server:
// misspelt perhaps, or of a release that is gone. Names of tests are their own.
func unknownSettings(environ []string) (names []string) {
	known := map[string]bool{}
	for f := range reflect.TypeFor[Config]().Fields() {
		known[f.Tag.Get("env")] = true
	}
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		if knob, ours := strings.CutPrefix(name, envPrefix); ours && !known[knob] && !strings.HasPrefix(knob, "TEST_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// fault is what is wrong with one knob.
type fault struct{ knob, why string }

type faults []fault

func (fs *faults) add(knob, format string, a ...any) {
	*fs = append(*fs, fault{knob, fmt.Sprintf(format, a...)})
}

func (fs faults) has(knob string) bool {
	return slices.ContainsFunc(fs, func(f fault) bool { return f.knob == knob })
}

func (fs faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	lines := []string{"the environment cannot be served with:"}
	for _, f := range fs {
		lines = append(lines, "  "+envPrefix+f.knob+" "+f.why)
	}
	return errors.New(strings.Join(lines, "\n"))
}

func (c Config) validate() error { return c.faults().err() }

func (c Config) faults() (fs faults) {
	c.checkProcess(&fs)
	c.checkHub(&fs)
	c.checkQueue(&fs)
	c.checkStores(&fs)
	if len(c.ServerKey) < 32 {
		fs.add("SERVER_KEY", "needs at least 32 characters, the same on every node")
	}
	if _, err := tickets.ParseKeys(c.TicketKey, c.ServerKey); err != nil {
		fs.add("TICKET_KEY", "cannot be used: %s", strings.TrimPrefix(err.Error(), "tickets: "))
	}
	if _, err := waitingroom.ParseKeys(c.PassKey, c.ServerKey); err != nil {
		fs.add("PASS_KEY", "cannot be used: %s", strings.TrimPrefix(err.Error(), "waitingroom: "))
	}
	c.checkSessions(&fs)
	c.checkPayments(&fs)
	return fs
}

func (c Config) checkPayments(fs *faults) {
	c.checkStripe(fs)
	switch {
	case !c.Sandbox && c.StripeSecretKey == "" && (c.has("api") || c.has("worker")):
		fs.add("SANDBOX", "must be true, or %sSTRIPE_SECRET_KEY set: nothing takes payments (a process with the hub role alone needs none)", envPrefix)
	case c.SandboxWithin < 0:
		fs.add("SANDBOX_WITHIN", "must not be negative")
	case c.Sandbox && len(c.SandboxSecret) < 16:
		fs.add("SANDBOX_SECRET", "needs at least 16 characters")
	}
	switch {
	case c.SandboxWebhookURL != "":
		fs.check("SANDBOX_WEBHOOK_URL", c.SandboxWebhookURL, "http", "https")
	case c.Sandbox && c.has("worker") && !c.has("api"):
		fs.add("SANDBOX_WEBHOOK_URL", "is required of a worker that is no api: name an api node, such as http://10.0.0.5:8080")
	}
}

// checkStripe looks at the keys hardest: a secret one in the wrong place would
// be told to everybody, and one for tests beside one for money sells for nothing.
func (c Config) checkStripe(fs *faults) {
	secret, public := c.StripeSecretKey, c.StripePublishableKey
	if secret == "" {
		if public != "" || len(c.StripeWebhookSecrets) > 0 {
			fs.add("STRIPE_SECRET_KEY", "is required with what else is set of Stripe")
		}
		return
	}
	if !strings.HasPrefix(secret, "sk_") && !strings.HasPrefix(secret, "rk_") {
		fs.add("STRIPE_SECRET_KEY", "is no secret key: those begin with sk_ or rk_")
	}
	switch {
	case public == "":
	case !strings.HasPrefix(public, "pk_"):
		fs.add("STRIPE_PUBLISHABLE_KEY", "is no publishable key: those begin with pk_, and it is told to everybody")
	case strings.HasPrefix(public, "pk_test_") != strings.HasPrefix(secret[min(1, len(secret)):], "k_test_"):
		fs.add("STRIPE_PUBLISHABLE_KEY", "and %sSTRIPE_SECRET_KEY are not both for tests or both for money", envPrefix)
	}
	if len(c.StripeWebhookSecrets) == 0 || slices.Contains(c.StripeWebhookSecrets, "") {
		fs.add("STRIPE_WEBHOOK_SECRETS", "needs the secret of the webhook, or several with commas between")
	}
	if c.StripeAtOnce != "exclude" && c.StripeAtOnce != "refund" {
		fs.add("STRIPE_AT_ONCE", "%q is neither exclude nor refund", c.StripeAtOnce)
	}
	for knob, url := range map[string]string{"STRIPE_API": c.StripeAPI, "STRIPE_RETURN_URL": c.StripeReturnURL} {
		if url != "" {
			fs.check(knob, url, "http", "https")
		}
	}
	if _, err := stripe.New(c.stripe(nil)); err != nil && len(c.StripeWebhookSecrets) > 0 {
		fs.add("STRIPE_METHODS", "cannot be used: %s", strings.TrimPrefix(err.Error(), "stripe: "))
	}
}

func (c Config) stripe(log *slog.Logger) stripe.Options {
	return stripe.Options{SecretKey: c.StripeSecretKey, WebhookSecrets: c.StripeWebhookSecrets, PublishableKey: c.StripePublishableKey,
		API: c.StripeAPI, Methods: c.StripeMethods, AtOnce: c.StripeAtOnce == "refund", ReturnURL: c.StripeReturnURL, Log: log}
}

func (c Config) checkProcess(fs *faults) {
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		fs.add("ADDR", "%q is no address: write host:port, or :port for every host", c.Addr)
	}
	if len(c.Roles) == 0 {
		fs.add("ROLES", "names no role")
	}
	for _, r := range c.Roles {
		if !slices.Contains(roleNames, r) {
			fs.add("ROLES", "%q is none of %s", r, strings.Join(roleNames, ", "))
		}
	}
	if c.Gate != "on" && c.Gate != "off" {
		fs.add("GATE", "%q is neither on nor off", c.Gate)
	}
	for _, o := range c.Origins {
		if _, err := path.Match(o, ""); err != nil {
			fs.add("ORIGINS", "%q is no pattern: write hosts, with * for any part", o)
		}
	}
	if _, err := c.proxies(); err != nil {
		fs.add("TRUSTED_PROXIES", "%v", err)
	}
	if c.WebhooksKeep < time.Hour {
		fs.add("WEBHOOKS_KEEP", "%v is below an hour", c.WebhooksKeep)
	}
	if c.Drain < 0 {
		fs.add("DRAIN", "%v is below nought", c.Drain)
	}
	if _, err := newLog(io.Discard, c.LogLevel); err != nil {
		fs.add("LOG_LEVEL", "%q is none of debug, info, warn, error", c.LogLevel)
	}
}

// proxies are the networks whose word is taken for where a request comes from.
func (c Config) proxies() (all []*net.IPNet, err error) {
	for _, text := range c.TrustedProxies {
		_, network, err := net.ParseCIDR(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%q is no network: write 203.0.113.0/24, or of one address 203.0.113.7/32", text)
		}
		if size, _ := network.Mask.Size(); size == 0 {
			return nil, fmt.Errorf("%q is everybody: whoever calls could say that they are somebody else", text)
		}
		all = append(all, network)
	}
	return all, nil
}

func (c Config) checkStores(fs *faults) {
	if fs.check("POSTGRES_URL", c.Postgres, postgresSchemes...); !fs.has("POSTGRES_URL") {
		if _, err := poolConfig(c.Postgres); err != nil {
			fs.add("POSTGRES_URL", "%v", err)
		}
	}
	for one := range strings.SplitSeq(c.Redis, ",") { // of a cluster, or of sentinels
		fs.check("REDIS_URL", one, "redis", "rediss", "unix", "redis-sentinel", "rediss-sentinel")
	}
	if !fs.has("REDIS_URL") {
		if _, err := holds.Options(c.Redis); err != nil {
			fs.add("REDIS_URL", "%v", err)
		}
	}
	for one := range strings.SplitSeq(c.NATS, ",") {
		fs.check("NATS_URL", one, "nats", "tls", "ws", "wss")
	}
}

func (c Config) checkSessions(fs *faults) {
	switch {
	case c.JWKSURL == "" && c.SessionKey == "":
		fs.add("SESSION_JWKS_URL", "is required (or %sSESSION_KEY): without it nobody can sign in", envPrefix)
	case c.JWKSURL != "" && c.SessionKey != "":
		fs.add("SESSION_KEY", "is set beside %sSESSION_JWKS_URL: use one", envPrefix)
	case c.SessionKey != "":
		if _, err := web.ParseKey(c.SessionKey); err != nil {
			fs.add("SESSION_KEY", "is no key: %s", strings.TrimPrefix(err.Error(), "web: "))
		}
	default:
		fs.check("SESSION_JWKS_URL", c.JWKSURL, "http", "https")
		if c.Issuer == "" {
			fs.add("SESSION_ISSUER", "is required with a JWKS URL: whose tokens are meant")
		}
		if c.Audience == "" {
			fs.add("SESSION_AUDIENCE", "is required with a JWKS URL: tokens meant for others must not work here")
		}
	}
	if _, err := web.ParseClaims(c.Claims); err != nil {
		fs.add("SESSION_CLAIMS", "cannot be used: %s", strings.TrimPrefix(err.Error(), "web: "))
	}
}

// check adds a fault unless the knob is set to a URL of one of the schemes.
func (fs *faults) check(knob, value string, schemes ...string) {
	if value == "" {
		fs.add(knob, "is required")
	} else if err := checkURL(value, schemes...); err != nil {
		fs.add(knob, "%v", err)
	}
}

var postgresSchemes = []string{"postgres", "postgresql"}

// checkURL says why a text is no URL of the schemes, and repeats none of it:
// in a URL that cannot be read the password may be anywhere. The drivers are
// less careful.
func checkURL(text string, schemes ...string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || strayAt(u):
		return errors.New("cannot be read as a URL: write special characters of a password as %2F for /, %40 for @, and so on")
	case !slices.Contains(schemes, u.Scheme) || u.Host+u.Path == "":
		return fmt.Errorf("is no %s:// URL", strings.Join(schemes, ":// or "))
	}
	return nil
}

// strayAt says that a URL has an @ where none belongs: a password that was not
// escaped, cut in two by one of its own characters.
func strayAt(u *url.URL) bool {
	return strings.Contains(u.Path+u.RawQuery+u.Fragment, "@")
}

func (c Config) has(role string) bool { return slices.Contains(c.Roles, role) }

// print writes every knob with its value, secrets masked, so that a log shows
// what a process ran with.
func (c Config) print(w io.Writer) {
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		say(w, "%s%s=%s\n", envPrefix, f.Tag.Get("env"), show(f.Tag.Get("secret"), v.Field(i).Interface()))
	}
}

const masked = "xxxxx"

// show is a knob's value as it may be told: as it would be written in the
// environment, secrets masked.
func show(secret string, value any) string {
	switch v := value.(type) {
	case []string:
		if secret != "" && len(v) > 0 {
			return masked
		}
		return strings.Join(v, ",")
	case string:
		switch {
		case v == "" || secret == "":
			return v
		case secret == "url":
			all := strings.Split(v, ",")
			for i := range all {
				all[i] = showURL(all[i])
			}
			return strings.Join(all, ",")
		}
		return masked
	}
	return fmt.Sprint(value)
}

// shownParameters of a URL tell nobody how to get in.
var shownParameters = []string{"host", "port", "sslmode", "pool_max_conns", "pool_size", "db", "master"}

// showURL leaves of a URL what says where it leads: a user may be a token, and a
// parameter a password.
func showURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || strayAt(u) {
		return masked
	}
	if u.User != nil {
		u.User = url.User(masked)
	}
	parameters := u.Query()
	for name := range parameters {
		if !slices.Contains(shownParameters, name) {
			parameters[name] = []string{masked}
		}
	}
	u.RawQuery = parameters.Encode()
	u.Fragment = ""
	return u.String()
}

// configHelp documents the environment, one line a knob.
func configHelp() string {
	var b strings.Builder
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		f := t.Field(i)
		fmt.Fprintf(&b, "  %-32s %s", envPrefix+f.Tag.Get("env"), f.Tag.Get("help"))
		if d := f.Tag.Get("envDefault"); d != "" {
			fmt.Fprintf(&b, " (default %s)", d)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
