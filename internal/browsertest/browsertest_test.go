package browsertest_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"seatcast/internal/browsertest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	browsertest.Stop()
	os.Exit(code)
}

// called is a test by another name.
type called struct {
	testing.TB
	name string
}

func (c called) Name() string { return c.name }

func TestTabsOfATestShareWhatIsStoredAndNoOtherTestFindsIt(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") }))
	t.Cleanup(s.Close)
	stored := func(open func(testing.TB, string) *browsertest.Page, test string) string {
		return browsertest.Eval[string](open(called{t, test}, s.URL), `
			const was = localStorage.getItem('place') ?? 'nothing';
			localStorage.setItem('place', 'kept');
			return was;`)
	}
	for _, tt := range []struct {
		test, want string
		open       func(testing.TB, string) *browsertest.Page
	}{
		{"TestA", "nothing", browsertest.Open}, {"TestA", "kept", browsertest.Open}, {"TestA/sub", "kept", browsertest.OpenPhone},
		{"TestB", "nothing", browsertest.Elsewhere}, {"TestB", "nothing", browsertest.Open}, {"TestB", "nothing", browsertest.Elsewhere}, {"TestB/sub", "kept", browsertest.Open},
	} {
		if got := stored(tt.open, tt.test); got != tt.want {
			t.Errorf("%s finds %s, want %s", tt.test, got, tt.want)
		}
	}
}
