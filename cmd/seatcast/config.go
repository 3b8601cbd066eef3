package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// Config is every knob of a serving process, read from the environment. The
// help tag is what `seatcast serve --help` prints.
type Config struct {
	Addr  string   `env:"ADDR" envDefault:":8080" help:"address to listen on"`
	Roles []string `env:"ROLES" envDefault:"api,hub,worker" help:"what this process does: api (bookings, checkout), hub (live maps), worker (jobs, mirror)"`

	Postgres string `env:"POSTGRES_URL" secret:"url" help:"postgres://… (required)"`
	Redis    string `env:"REDIS_URL" secret:"url" help:"redis://… or unix://… (required)"`
	NATS     string `env:"NATS_URL" secret:"url" help:"nats://… (required)"`

	ServerKey string `env:"SERVER_KEY" secret:"yes" help:"at least 32 characters, the same on every node: booking ids are derived from it (required)"`

	JWKSURL    string `env:"SESSION_JWKS_URL" help:"where your login publishes its keys"`
	SessionKey string `env:"SESSION_KEY" secret:"yes" help:"a local key instead of a JWKS URL: hs256:<base64> or ed25519:<base64 seed>"`
	Issuer     string `env:"SESSION_ISSUER" help:"iss a session token must carry"`
	Audience   string `env:"SESSION_AUDIENCE" help:"aud a session token must carry"`
	Claims     string `env:"SESSION_CLAIMS" envDefault:"user=sub" help:"claim map: which claim of your tokens is the account"`

	Sandbox           bool   `env:"SANDBOX" envDefault:"false" help:"offer the built-in payment provider that moves no money"`
	SandboxSecret     string `env:"SANDBOX_SECRET" secret:"yes" help:"what the sandbox signs its webhooks with, at least 16 characters (required with SEATCAST_SANDBOX)"`
	SandboxWebhookURL string `env:"SANDBOX_WEBHOOK_URL" help:"where the sandbox sends them; default: this process"`

	Origins  []string      `env:"ORIGINS" help:"host patterns of other sites that may open a WebSocket"`
	Drain    time.Duration `env:"DRAIN" envDefault:"10s" help:"how long a stopping process takes to send its watchers elsewhere"`
	LogLevel string        `env:"LOG_LEVEL" envDefault:"info" help:"debug, info, warn or error"`
}

const envPrefix = "SEATCAST_"

var roleNames = []string{"api", "hub", "worker"}

// loadConfig reads the environment and says everything that is wrong with it
// at once.
func loadConfig() (Config, error) {
	c, err := env.ParseAsWithOptions[Config](env.Options{Prefix: envPrefix})
	if err != nil {
		return c, fmt.Errorf("configuration: %w", err)
	}
	return c, c.validate()
}

func (c Config) validate() error {
	var faults []error
	fault := func(knob, why string) { faults = append(faults, fmt.Errorf("%s%s: %s", envPrefix, knob, why)) }

	for _, must := range []struct{ knob, value string }{
		{"POSTGRES_URL", c.Postgres}, {"REDIS_URL", c.Redis}, {"NATS_URL", c.NATS},
	} {
		if must.value == "" {
			fault(must.knob, "is required")
		}
	}
	if len(c.ServerKey) < 32 {
		fault("SERVER_KEY", "needs at least 32 characters, the same on every node")
	}
	switch {
	case c.JWKSURL == "" && c.SessionKey == "":
		fault("SESSION_JWKS_URL", "is required (or SEATCAST_SESSION_KEY): without it nobody can sign in")
	case c.JWKSURL != "" && c.SessionKey != "":
		fault("SESSION_KEY", "is set beside SESSION_JWKS_URL: use one")
	}
	switch {
	case !c.Sandbox && (c.has("api") || c.has("worker")):
		fault("SANDBOX", "is the only payment provider there is: set it to true, or give this process the hub role alone")
	case c.Sandbox && len(c.SandboxSecret) < 16:
		fault("SANDBOX_SECRET", "needs at least 16 characters")
	}
	if len(c.Roles) == 0 {
		fault("ROLES", "names no role")
	}
	for _, r := range c.Roles {
		if !slices.Contains(roleNames, r) {
			fault("ROLES", fmt.Sprintf("%q is none of %s", r, strings.Join(roleNames, ", ")))
		}
	}
	return errors.Join(faults...)
}

func (c Config) has(role string) bool { return slices.Contains(c.Roles, role) }

// print writes every knob with its value, secrets masked, so that a log shows
// what a process ran with.
func (c Config) print(w io.Writer) {
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		fmt.Fprintf(w, "%s%s=%v\n", envPrefix, f.Tag.Get("env"), mask(f.Tag.Get("secret"), v.Field(i).Interface()))
	}
}

func mask(kind string, value any) any {
	s, _ := value.(string)
	switch {
	case kind == "" || s == "":
		return value
	case kind == "url":
		if u, err := url.Parse(s); err == nil {
			return u.Redacted()
		}
	}
	return "xxxxx"
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
