package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"seatcast/holds"
	"seatcast/web"
)

// settings makes these the only variables of ours in the environment.
func settings(t *testing.T, values map[string]string) {
	t.Helper()
	for _, line := range os.Environ() {
		if name, _, _ := strings.Cut(line, "="); strings.HasPrefix(name, envPrefix) {
			t.Setenv(name, "") // remembers it for the cleanup
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, value := range values {
		t.Setenv(envPrefix+name, value)
	}
}

// good is an environment that can be served with.
func good() map[string]string {
	return map[string]string{
		"POSTGRES_URL": "postgres://seat:pg-secret@db.example/seatcast?sslmode=require&sslpassword=tls-secret",
		"REDIS_URL":    "redis://seat:redis-secret@redis.example:6379/0", "NATS_URL": "nats://nats-secret@a.example:4222,nats://seat:other-secret@b.example",
		"SERVER_KEY": strings.Repeat("server-secret ", 3), "SESSION_KEY": web.GenerateKey(),
		"SANDBOX": "true", "SANDBOX_SECRET": "sandbox-secret-of-some-length",
		"SANDBOX_WEBHOOK_URL": "https://hook:hook-secret@api.example/v1/payments/webhook/sandbox",
	}
}

func TestServeTellsEveryFaultOfTheEnvironmentByName(t *testing.T) {
	for name, tt := range map[string]struct {
		change map[string]string // to the good environment; "-" takes a variable away
		want   []string          // what is told, each a variable and a part of the reason
	}{
		"NothingSet": {
			map[string]string{"POSTGRES_URL": "-", "REDIS_URL": "-", "NATS_URL": "-", "SERVER_KEY": "-", "SESSION_KEY": "-",
				"SANDBOX": "-", "SANDBOX_SECRET": "-", "SANDBOX_WEBHOOK_URL": "-"},
			[]string{"POSTGRES_URL is required", "REDIS_URL is required", "NATS_URL is required", "SERVER_KEY needs at least 32",
				"SESSION_JWKS_URL is required (or SEATCAST_SESSION_KEY)", "SANDBOX must be true"},
		},
		"EverythingWrong": {
			map[string]string{"ADDR": "8080", "ROLES": "api,cook", "POSTGRES_URL": "mysql://h/db", "REDIS_URL": "localhost:6379", "NATS_URL": "nats://h,http://h",
				"SERVER_KEY": "short", "TICKET_KEY": "ed25519:sesame", "SESSION_KEY": "sesame", "SESSION_CLAIMS": "sub", "SANDBOX": "perhaps", "SANDBOX_SECRET": "short",
				"SANDBOX_WEBHOOK_URL": "ftp://h/x", "ORIGINS": "[", "DRAIN": "10", "LOG_LEVEL": "loud",
				"HUB_SESSIONS": "many", "HUB_RATE": "0", "HUB_PER_ADDRESS": "0", "HUB_TOPICS": "0", "HUB_MESSAGES": "-2", "HUB_MESSAGE_SIZE": "10",
				"HUB_MAX_AGE": "5s", "HUB_ENGINE": "steam", "GATE": "ajar", "QUEUE_PER_ACCOUNT": "0", "QUEUE_PER_ADDRESS": "-2", "QUEUE_SUSPECT": "10", "QUEUE_WAIT": "5ms",
				"TRUSTED_PROXIES": "203.0.113.0/24,198.51.100.7"},
			[]string{`ADDR "8080" is no address`, `ROLES "cook" is none of api, hub, worker`, "POSTGRES_URL is no postgres://", "REDIS_URL is no redis://",
				"NATS_URL is no nats://", "SERVER_KEY needs", "TICKET_KEY cannot be used", "SESSION_KEY is no key", "SESSION_CLAIMS cannot be used", "SANDBOX must be true or false",
				"SANDBOX_WEBHOOK_URL is no http://", "ORIGINS", "DRAIN must be a time with its unit", `LOG_LEVEL "loud" is none of`,
				"HUB_SESSIONS must be a whole number", "HUB_RATE 0 lets nobody in: -1 is no limit", "HUB_PER_ADDRESS 0 lets", "HUB_TOPICS 0 is less", "HUB_MESSAGES -2 lets",
				"HUB_MESSAGE_SIZE 10 is less", "HUB_MAX_AGE 5s is less", `HUB_ENGINE "steam" is none of`, `GATE "ajar" is neither`,
				"QUEUE_PER_ACCOUNT 0 lets", "QUEUE_PER_ADDRESS -2 lets", "QUEUE_SUSPECT 10 is less", "QUEUE_WAIT 5ms is less", `TRUSTED_PROXIES "198.51.100.7" is no network`},
		},
		"JWKSNeedsIssuerAndAudience": {
			map[string]string{"SESSION_KEY": "-", "SESSION_JWKS_URL": "https://login.example/keys"},
			[]string{"SESSION_ISSUER is required", "SESSION_AUDIENCE is required"},
		},
		"TwoWaysToSignIn":    {map[string]string{"SESSION_JWKS_URL": "https://login.example/keys"}, []string{"SESSION_KEY is set beside SEATCAST_SESSION_JWKS_URL"}},
		"SandboxWorkerAlone": {map[string]string{"ROLES": "worker", "SANDBOX_WEBHOOK_URL": "-"}, []string{"SANDBOX_WEBHOOK_URL is required"}},
		"StripeSwapped": {map[string]string{"STRIPE_SECRET_KEY": "pk_live_1", "STRIPE_PUBLISHABLE_KEY": "sk_live_1", "STRIPE_AT_ONCE": "perhaps", "STRIPE_API": "ftp://h"},
			[]string{"STRIPE_SECRET_KEY is no secret key", "STRIPE_PUBLISHABLE_KEY is no publishable", "STRIPE_WEBHOOK_SECRETS needs", "STRIPE_AT_ONCE", "STRIPE_API is no"}},
		"StripeMixed": {map[string]string{"STRIPE_SECRET_KEY": "rk_test_1", "STRIPE_PUBLISHABLE_KEY": "pk_live_1", "STRIPE_WEBHOOK_SECRETS": "whsec_1"},
			[]string{"STRIPE_PUBLISHABLE_KEY and SEATCAST_STRIPE_SECRET_KEY are not both"}},
		"StripeHalf":         {map[string]string{"STRIPE_PUBLISHABLE_KEY": "pk_live_1"}, []string{"STRIPE_SECRET_KEY is required"}},
		"StripeNothing":      {map[string]string{"STRIPE_SECRET_KEY": "sk_live_1", "STRIPE_WEBHOOK_SECRETS": "whsec_1", "STRIPE_METHODS": "ideal"}, []string{"STRIPE_METHODS cannot be used"}},
		"SandboxSecretShort": {map[string]string{"SANDBOX_SECRET": "short"}, []string{"SANDBOX_SECRET needs at least 16"}},
		"EverybodyIsAProxy":  {map[string]string{"TRUSTED_PROXIES": "::/0"}, []string{`TRUSTED_PROXIES "::/0" is everybody`}},
		"Parameters": {
			map[string]string{"POSTGRES_URL": "postgres://h/db?sslmode=perhaps", "REDIS_URL": "redis://h/zero", "DRAIN": "-1s", "HUB_SESSIONS": "-2"},
			[]string{"HUB_SESSIONS -2 is below nought", "POSTGRES_URL has a parameter that cannot be used: sslmode is invalid", "REDIS_URL", "DRAIN -1s is below nought"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := good()
			for k, v := range tt.change {
				if all[k] = v; v == "-" {
					delete(all, k)
				}
			}
			settings(t, all)
			_, printed, err := call(t, "serve")
			if err == nil {
				t.Fatal("it was served with")
			}
			told := strings.Split(err.Error(), "\n")[1:]
			if len(told) != len(tt.want) || printed != "" {
				t.Errorf("%d faults told, want %d:\n%v\n%s", len(told), len(tt.want), err, printed)
			}
			for _, want := range tt.want {
				if !slices.ContainsFunc(told, func(line string) bool { return strings.HasPrefix(line, "  "+envPrefix+want) }) {
					t.Errorf("not told: %s\nin %v", want, err)
				}
			}
		})
	}
}

func TestASettingThatMeansNothingIsToldByNameAlone(t *testing.T) {
	all := good()
	all["BOGUS"], all["HUB_SESSION"], all["TEST_SEED"] = "secret", "10", "1"
	settings(t, all)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it goes no further than the first store
	var log bytes.Buffer
	if err := run(ctx, []string{"serve"}, io.Discard, &log); err == nil {
		t.Error("it was served with")
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "mean nothing") {
			if !strings.Contains(line, `["SEATCAST_BOGUS","SEATCAST_HUB_SESSION"]`) || strings.Contains(line, "secret") {
				t.Errorf("told as %s", line)
			}
			return
		}
	}
	t.Errorf("nothing is told:\n%s", log.String())
}

func TestAHubAloneNeedsNoPaymentProvider(t *testing.T) {
	all := good()
	delete(all, "SANDBOX")
	delete(all, "SANDBOX_SECRET")
	all["ROLES"] = "hub"
	settings(t, all)
	if _, err := loadConfig(); err != nil {
		t.Error(err)
	}
}

// The secrets above all have "secret" in them, and are in no URL that leads
// anywhere: what fails to connect must not tell them either.
func TestNoSecretIsEverTold(t *testing.T) {
	all := good()
	all["STRIPE_SECRET_KEY"], all["STRIPE_WEBHOOK_SECRETS"] = "sk_test_secret", "whsec_secret1,whsec_secret2"
	settings(t, all)
	cfg, err := loadConfig()
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	cfg.print(&printed)
	for _, want := range []string{"SEATCAST_POSTGRES_URL=postgres://xxxxx@db.example/seatcast?sslmode=require&sslpassword=xxxxx\n",
		"SEATCAST_REDIS_URL=redis://xxxxx@redis.example:6379/0\n", "SEATCAST_NATS_URL=nats://xxxxx@a.example:4222,nats://xxxxx@b.example\n",
		"SEATCAST_SERVER_KEY=xxxxx\n", "SEATCAST_SESSION_KEY=xxxxx\n", "SEATCAST_SESSION_JWKS_URL=\n", "SEATCAST_SANDBOX=true\n", "SEATCAST_STRIPE_SECRET_KEY=xxxxx\n", "SEATCAST_STRIPE_WEBHOOK_SECRETS=xxxxx\n", "SEATCAST_ROLES=api,hub,worker\n"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("not printed: %sin\n%s", want, printed.String())
		}
	}
	if text := printed.String(); strings.Contains(text, "secret") || strings.Contains(text, cfg.SessionKey) {
		t.Errorf("a secret is printed:\n%s", text)
	}

	// Unescaped or cut in two, as it happens to people.
	for _, bad := range []string{"%s://u:my/secret@h/0", "%s://u:12/secret@h:1/0", "%s://u:12?secret@h/0", "%s://u:my#secret@h", "%s://u:%%zzsecret@h", "%s://u:secret@h h",
		"%s://u:secret@[::1", "host=h password=secret", "secret", "%s://u:secret@h:port/x", "%s://h/x?password=secret&sslmode=y&db=y", "%s://127.0.0.1:1/0?sslmode=disable&sslpassword=secret",
		"%s://u:secret@127.0.0.1:1/0"} {
		for scheme, knob := range map[string]string{"postgres": "POSTGRES_URL", "redis": "REDIS_URL", "nats": "NATS_URL"} {
			url := strings.ReplaceAll(strings.ReplaceAll(bad, "%s", scheme), "%%", "%")
			all := good()
			all[knob] = url
			settings(t, all)
			ctx, cancel := context.WithCancel(t.Context())
			var out, log bytes.Buffer
			cancel() // what gets as far as to dial stops there
			err := run(ctx, []string{"serve"}, &out, &log)
			if err == nil || strings.Contains(err.Error()+out.String()+log.String(), "secret") {
				t.Errorf("%s=%s: %v\n%s%s", knob, url, err, out.String(), log.String())
			}
		}
		// Nor do the parts, of which somebody may ask without looking first.
		if _, err := holds.Options(strings.ReplaceAll(strings.ReplaceAll(bad, "%s", "redis"), "%%", "%")); err != nil && strings.Contains(bad, "@") && strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
		url := strings.ReplaceAll(strings.ReplaceAll(bad, "%s", "postgres"), "%%", "%")
		if _, _, err := call(t, "event", "list", "--postgres", url); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("event list of %s: %v", url, err)
		}
	}
}

var knobName = regexp.MustCompile(`SEATCAST_[A-Z_]+`)

func TestEveryKnobIsDocumented(t *testing.T) {
	var knobs []string
	for f := range reflect.TypeFor[Config]().Fields() {
		knobs = append(knobs, envPrefix+f.Tag.Get("env"))
		if f.Tag.Get("help") == "" {
			t.Errorf("%s has no help", f.Name)
		}
	}
	slices.Sort(knobs)
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Settings")
	table, _, _ = strings.Cut(table, "\n## ")
	var rows []string
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| `SEATCAST_") {
			name, _, _ := strings.Cut(line[1:], "|")
			rows = append(rows, knobName.FindAllString(name, -1)...)
		}
	}
	slices.Sort(rows)
	if !slices.Equal(rows, knobs) {
		t.Errorf("docs/operating.md lists\n%v\nand there are\n%v", rows, knobs)
	}
	for _, name := range knobName.FindAllString(string(page), -1) {
		if !slices.Contains(knobs, name) {
			t.Errorf("docs/operating.md speaks of %s, which does nothing", name)
		}
	}
	help := must(t, "serve", "--help")
	for _, name := range knobs {
		if !strings.Contains(help, name+" ") {
			t.Errorf("serve --help says nothing of %s", name)
		}
	}
}
