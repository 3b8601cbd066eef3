package browsertest

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Look is how somebody looks at a page.
type Look struct {
	suffix        string // of the picture's name
	width, height int64
	scheme, media string
}

// The looks a picture is taken in.
var (
	Desk  = Look{"", 1280, 800, "light", ""}
	Dark  = Look{"-dark", 1280, 800, "dark", ""}
	Phone = Look{"-phone", 390, 844, "light", ""}
	Print = Look{"-print", 794, 1123, "light", "print"} // A4
)

// heaviest is the most bytes of a picture: they are kept with the source.
const heaviest = 200 << 10

// See has the page be looked at so from now on. Tabs begin as Desk, in the light.
func (p *Page) See(l Look) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(l.width, l.height))
	media := emulation.SetEmulatedMediaParams{Media: l.media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}}}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, media); err != nil {
		p.t.Fatal(err)
	}
	Eval[int](p, `await new Promise((f) => requestAnimationFrame(() => requestAnimationFrame(f))); return 0;`)
}

// Shot saves what the window shows as a picture of that name, once for each look,
// below the folder that SEATCAST_SCREENSHOTS names. Without that it does nothing, so
// that a test can picture the states it comes through. Call it in the test itself:
// make screenshots looks there for which tests to run.
func (p *Page) Shot(name string, looks ...Look) {
	p.t.Helper()
	folder := os.Getenv("SEATCAST_SCREENSHOTS")
	if folder == "" {
		return
	}
	for _, l := range looks {
		p.See(l)
		p.save(p.Picture(), filepath.Join(folder, name+l.suffix+".png"))
	}
	p.See(Desk)
}

func (p *Page) save(picture image.Image, path string) {
	p.t.Helper()
	var b bytes.Buffer
	e := png.Encoder{CompressionLevel: png.BestCompression}
	if err := e.Encode(&b, picture); err != nil {
		p.t.Fatal(err)
	}
	if b.Len() > heaviest {
		p.t.Errorf("%s has %d bytes, which is more than %d", path, b.Len(), heaviest)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		p.t.Fatal(err)
	}
}
