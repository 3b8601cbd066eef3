const SLOP = 6;
function listen(canvas, target) {
  const held = /* @__PURE__ */ new Map();
  let moved = false;
  let trail = [];
  const place = (e) => {
    const r = canvas.getBoundingClientRect();
    return { x: e.clientX - r.left, y: e.clientY - r.top, t: e.timeStamp };
  };
  const spread = () => {
    const [a, b] = [...held.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, d: Math.hypot(a.x - b.x, a.y - b.y) };
  };
  canvas.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    canvas.setPointerCapture(e.pointerId);
    const p = place(e);
    held.set(e.pointerId, { ...p, x0: p.x, y0: p.y });
    moved = held.size > 1;
    trail = [p];
    target.fling(0, 0);
  });
  canvas.addEventListener("pointermove", (e) => {
    const p = place(e);
    const was = held.get(e.pointerId);
    if (!was) {
      if (e.pointerType === "mouse") target.hover(p.x, p.y);
      return;
    }
    if (held.size === 2) {
      const before = spread();
      held.set(e.pointerId, { ...was, ...p });
      const after = spread();
      target.pan(after.x - before.x, after.y - before.y);
      if (before.d > 0) target.zoom(after.x, after.y, after.d / before.d, false);
      return;
    }
    if (!moved && Math.hypot(p.x - was.x0, p.y - was.y0) < SLOP) return;
    moved = true;
    target.hover(null, null);
    target.pan(p.x - was.x, p.y - was.y);
    held.set(e.pointerId, { ...was, ...p });
    trail = [...trail.filter((q) => p.t - q.t < 80), p];
  });
  const lift = (e) => {
    const was = held.get(e.pointerId);
    if (!was) return;
    held.delete(e.pointerId);
    if (held.size) return;
    if (!moved && e.type === "pointerup") target.tap(was.x0, was.y0, e.pointerType !== "mouse");
    const first = trail[0];
    const last = trail[trail.length - 1];
    if (moved && trail.length > 1 && last.t > first.t && e.timeStamp - last.t < 50) {
      target.fling((last.x - first.x) / (last.t - first.t), (last.y - first.y) / (last.t - first.t));
    }
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", (e) => held.has(e.pointerId) || target.hover(null, null));
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    const p = place(e);
    const unit = e.deltaMode === 1 ? 33 : 1;
    target.zoom(p.x, p.y, Math.exp(-Math.max(-150, Math.min(150, e.deltaY * unit)) * (e.ctrlKey ? 0.01 : 22e-4)), false);
  }, { passive: false });
  canvas.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const c = [canvas.clientWidth / 2, canvas.clientHeight / 2];
    const keys = {
      ArrowLeft: () => target.pan(80, 0),
      ArrowRight: () => target.pan(-80, 0),
      ArrowUp: () => target.pan(0, 80),
      ArrowDown: () => target.pan(0, -80),
      "+": () => target.zoom(...c, 1.6, true),
      "=": () => target.zoom(...c, 1.6, true),
      "-": () => target.zoom(...c, 1 / 1.6, true),
      0: () => target.fit()
    };
    const does = keys[e.key];
    if (!does) return;
    e.preventDefault();
    does();
  });
}

export { listen };
