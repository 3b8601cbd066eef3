package main

import (
	"github.com/labstack/echo/v4"

	"seatcast/catalog"
	"seatcast/holds"
	"seatcast/seatmap/history"
)

// buildSeatLog has workers record what happens to seats, and operators told.
func (b *builder) buildSeatLog(a *app, admin *echo.Group, shop *catalog.Store, store *holds.Store) {
	book := history.NewBook(b.st.pool)
	if b.cfg.has("api") {
		history.NewAPI(book, shop, store).MountAdmin(admin)
	}
	if b.cfg.has("worker") {
		recorder := history.NewRecorder(history.Options{Book: book, Redis: b.st.rdb, Rebuilder: store, Registerer: b.reg, Log: b.log})
		a.runners = append(a.runners, recorder.Run)
	}
}
