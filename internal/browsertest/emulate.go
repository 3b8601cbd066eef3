package browsertest

import (
	"context"
	"encoding/json"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// At has the browser be where clocks show the time of an IANA zone.
func (p *Page) At(zone string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone}); err != nil {
		p.t.Fatal(err)
	}
}

// Prefers has media features have values, such as prefers-color-scheme dark, in
// place of those that had any before.
func (p *Page) Prefers(features map[string]string) {
	p.t.Helper()
	params := emulation.SetEmulatedMediaParams{}
	for name, value := range features {
		params.Features = append(params.Features, &emulation.MediaFeature{Name: name, Value: value})
	}
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, params); err != nil {
		p.t.Fatal(err)
	}
}

// Size has the window be so large, in CSS pixels.
func (p *Page) Size(width, height int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height))
}

// Named are the accessible names that a screen reader finds, each behind its role:
// "button Hold 2". What it ignores is not among them.
func (p *Page) Named() (all []string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	tree, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, n := range tree.Nodes {
		if n.Ignored || n.Role == nil || n.Name == nil {
			continue
		}
		all = append(all, said(n.Role)+" "+said(n.Name))
	}
	return all
}

// said is a value of the tree that is a text, or nothing.
func said(v *accessibility.Value) string {
	var text string
	_ = json.Unmarshal(v.Value, &text) // a number or none is not a name
	return text
}
