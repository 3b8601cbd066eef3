package browsertest

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"

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

// Rests waits until no map of the page glides, or is yet to be drawn as it is now.
func (p *Page) Rests() {
	p.t.Helper()
	p.Until("its maps rest", `![document, ...[...document.querySelectorAll('seat-map')].map((map) => map.shadowRoot)].some((root) => root.querySelector('[data-moving]'))`)
}

// Shot saves what the window shows as a picture of that name, once for each look,
// below the folder that SEATCAST_SCREENSHOTS names. Without that it does nothing, so
// that a test can picture the states it comes through. Call it in the test itself:
// make screenshots looks there for which tests to run. A map is pictured when it rests.
func (p *Page) Shot(name string, looks ...Look) {
	p.t.Helper()
	folder := os.Getenv("SEATCAST_SCREENSHOTS")
	if folder == "" {
		return
	}
	for _, l := range looks {
		p.See(l)
		p.Rests()
		p.save(p.Picture(), filepath.Join(folder, name+l.suffix+".png"))
	}
	p.See(Desk)
}

func (p *Page) save(picture image.Image, path string) {
	p.t.Helper()
	var b bytes.Buffer
	e := png.Encoder{CompressionLevel: png.BestCompression}
	if err := e.Encode(&b, indexed(picture)); err != nil {
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

// indexed is a picture in 256 colours, which makes it a third as large: those of its
// surfaces, then one of each kind of colour there is, and for every other the nearest.
func indexed(picture image.Image) *image.Paletted {
	bounds := picture.Bounds()
	times := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			times[at(x, y)]++
		}
	}
	commonest := slices.SortedFunc(maps.Keys(times), func(a, b color.RGBA) int { return cmp.Compare(times[b], times[a]) })
	var palette color.Palette
	kinds := map[color.RGBA]bool{}
	for n, c := range commonest {
		kind := color.RGBA{c.R >> 4, c.G >> 4, c.B >> 4, 0}
		if len(palette) < 256 && (n < 64 || !kinds[kind]) {
			palette = append(palette, c)
			kinds[kind] = true
		}
	}
	index := map[color.RGBA]uint8{}
	for c := range times {
		index[c] = uint8(palette.Index(c))
	}
	to := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			to.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	return to
}
