package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/labstack/echo/v4"
)

//go:embed dist
var dist embed.FS

// asset is one file of the browser client as it is served.
type asset struct {
	body, gzipped []byte
	kind          string // Content-Type
	tag           string // ETag of the plain body
}

// MountPages adds the browser client: the list of events at /, the page of an
// event at /events/{event}, that of its line at /queue/{event}, somebody's tickets at
// /tickets, the operators' console at /console, and the files they load below /app/{hash of all of
// them}/, which a browser keeps for ever; and /seat-map.js, the map as an element for
// pages of other sites. They are in web/dist, which make assets builds from web/app.
func MountPages(e *echo.Echo) {
	files, hash := readApp(dist)
	base := "/app/" + hash
	for path, name := range map[string]string{"/": "index.html", "/events/:event": "event.html", "/tickets": "tickets.html", "/console": "console.html"} {
		e.GET(path, files[name].page(base).serve("no-cache"))
	}
	for path, meant := range map[string]string{"/events": "/", "/events/": "/", "/queue": "/", "/queue/": "/", "/tickets/": "/tickets", "/console/": "/console"} {
		e.GET(path, func(c echo.Context) error { return c.Redirect(http.StatusFound, meant) })
	}
	e.GET("/queue/:event", files["queue.html"].page(base).serve("public, max-age=60")) // a million people open it in one minute
	element := files["seat-map.js"].serve("public, max-age=300")
	e.GET("/seat-map.js", func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderAccessControlAllowOrigin, "*") // a module of another site is asked for so
		return element(c)
	})
	e.GET("/app/:hash/:file", func(c echo.Context) error {
		a, ok := files[c.Param("file")]
		if !ok || strings.HasSuffix(c.Param("file"), ".html") {
			return echo.ErrNotFound
		}
		// Another hash is a page of another version, in the middle of a
		// deployment: it gets what there is, but must not keep it.
		control := "no-cache"
		if c.Param("hash") == hash {
			control = "public, max-age=31536000, immutable"
		}
		return a.serve(control)(c)
	})
}

// readApp reads all files and the hash that names this version of them. The
// files are part of the program: one that cannot be read is a bug.
func readApp(from fs.FS) (map[string]*asset, string) {
	files := map[string]*asset{}
	all := sha256.New()
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		all.Write(fmt.Appendf(nil, "%s %d\n%s", name, len(body), body))
		files[path.Base(name)] = newAsset(path.Base(name), body)
		return nil
	})
	if err != nil {
		panic(err)
	}
	return files, hex.EncodeToString(all.Sum(nil)[:8])
}

func newAsset(name string, body []byte) *asset {
	kind := mime.TypeByExtension(path.Ext(name))
	if path.Ext(name) == ".js" {
		kind = "text/javascript; charset=utf-8" // whatever the system's table says: a module of another type is refused
	}
	sum := sha256.Sum256(body)
	return &asset{body: body, gzipped: zip(body), kind: kind, tag: hex.EncodeToString(sum[:8])}
}

func zip(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a good one
	_, _ = w.Write(body)                                  // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// page is an HTML file that finds the other files below base.
func (a *asset) page(base string) *asset {
	return newAsset("page.html", bytes.ReplaceAll(a.body, []byte("{{base}}"), []byte(base)))
}

// serve answers with the file, which caches may keep as control says.
func (a *asset) serve(control string) echo.HandlerFunc {
	return Cacheable{Control: control, Kind: a.kind, Tag: a.tag,
		Plain: func() []byte { return a.body }, Gzip: func() []byte { return a.gzipped }}.Serve
}
