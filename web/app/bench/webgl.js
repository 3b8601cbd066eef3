// Seats as points of WebGL 2, for the benchmark alone: shapes in the fragment
// shader, one byte a seat for its look, words on a canvas above. It draws what
// map.ts draws but wheelchairs, rings and glows.

const vertex = `#version 300 es
in vec2 place; in vec3 color; in float look; in float flags;
uniform vec4 window; // x0, y0, and clip units per unit
uniform float side; uniform vec3 held; uniform vec3 sold; uniform vec3 closed; uniform vec3 accent; uniform float faint;
out vec4 ink; flat out float kind; flat out float form;
void main() {
  gl_Position = vec4((place - window.xy) * window.zw + vec2(-1.0, 1.0), 0.0, 1.0);
  gl_PointSize = max(1.0, side * 2.5);
  kind = mod(look, 8.0); form = flags;
  vec3 c = kind < 0.5 ? color : kind < 1.5 ? held : kind < 2.5 ? sold : kind < 3.5 ? closed : accent;
  ink = vec4(c, look > 7.5 ? faint : 1.0);
}`;

const fragment = `#version 300 es
precision highp float;
in vec4 ink; flat in float kind; flat in float form; uniform float side; out vec4 color;
void main() {
  vec2 p = (gl_PointCoord - 0.5) * 2.5; // 1 is the radius of a seat
  float d = mod(form, 2.0) > 0.5 ? max(abs(p.x), abs(p.y)) : form > 1.5 && form < 3.5 ? (abs(p.x) + abs(p.y)) / 1.25 : length(p);
  float soft = 1.0 / max(side, 1.0);
  float a = 1.0 - smoothstep(1.0 - soft, 1.0 + soft, d);
  if (kind > 0.5 && kind < 1.5) a *= p.y > 0.0 ? 1.0 : smoothstep(0.75, 0.85, d);
  else if (kind > 1.5 && kind < 2.5) a *= (1.0 - smoothstep(0.05, 0.18, min(abs(p.x - p.y), abs(p.x + p.y)))) * step(max(abs(p.x), abs(p.y)), 0.42);
  else if (kind > 2.5 && kind < 3.5) a *= 1.0 - step(0.25, length(p));
  if (form > 3.5 && p.y < -0.3) a *= 0.35;
  color = vec4(ink.rgb * ink.a * a, ink.a * a);
}`;

const ground = `#version 300 es
in vec2 place; uniform vec4 window;
void main() { gl_Position = vec4((place - window.xy) * window.zw + vec2(-1.0, 1.0), 0.0, 1.0); }`;

const flat = `#version 300 es
precision mediump float; uniform vec3 paint; out vec4 color;
void main() { color = vec4(paint, 1.0); }`;

function program(gl, ...sources) {
  const p = gl.createProgram();
  sources.forEach((source, n) => {
    const s = gl.createShader(n ? gl.FRAGMENT_SHADER : gl.VERTEX_SHADER);
    gl.shaderSource(s, source);
    gl.compileShader(s);
    if (!gl.getShaderParameter(s, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(s));
    gl.attachShader(p, s);
  });
  gl.linkProgram(p);
  if (!gl.getProgramParameter(p, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(p));
  return p;
}

/** rgb reads a colour of CSS as three numbers up to 1. */
function rgb(css) {
  const ctx = document.createElement('canvas').getContext('2d');
  ctx.fillStyle = css;
  ctx.fillRect(0, 0, 1, 1);
  return [...ctx.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => v / 255);
}

/** Points draws a chart with the state of its seats. */
export class Points {
  constructor(canvas, words, { chart, state, painter, legend, labels, rows, sells }) {
    Object.assign(this, { canvas, chart, state, painter, legend, labels, rows, sells, ctx: words.getContext('2d') });
    const gl = this.gl = canvas.getContext('webgl2', { antialias: false });
    if (!gl) throw new Error('this browser has no WebGL 2');
    const { colors } = painter;
    this.paper = rgb(colors.paper);
    this.slabs = this.#mesh();
    this.points = program(gl, vertex, fragment);
    this.vao = gl.createVertexArray();
    gl.bindVertexArray(this.vao);
    const place = new Float32Array(chart.size * 2);
    const color = new Float32Array(chart.size * 3);
    const of = chart.categories.map((c) => rgb(c.color));
    for (let i = 0; i < chart.size; i++) {
      place.set([chart.x[i], chart.y[i]], 2 * i);
      color.set(of[chart.category[i]], 3 * i);
    }
    this.#attribute(this.points, 'place', place, 2, gl.FLOAT, gl.STATIC_DRAW);
    this.#attribute(this.points, 'color', color, 3, gl.FLOAT, gl.STATIC_DRAW);
    this.#attribute(this.points, 'flags', chart.flags, 1, gl.UNSIGNED_BYTE, gl.STATIC_DRAW);
    this.looks = this.#attribute(this.points, 'look', state.status, 1, gl.UNSIGNED_BYTE, gl.DYNAMIC_DRAW);
    gl.useProgram(this.points);
    for (const name of ['held', 'sold', 'closed', 'accent']) gl.uniform3fv(gl.getUniformLocation(this.points, name), rgb(colors[name]));
    gl.uniform1f(gl.getUniformLocation(this.points, 'faint'), 0.22);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  #attribute(of, name, data, size, type, use) {
    const { gl } = this;
    const buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, use);
    const at = gl.getAttribLocation(of, name);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, size, type, false, 0, 0);
    return buffer;
  }

  /** mesh is the ground of the sections: a quad a piece of a row. */
  #mesh() {
    const { gl, chart } = this;
    const made = program(gl, ground, flat);
    const vao = gl.createVertexArray();
    gl.bindVertexArray(vao);
    const corners = [];
    const w = chart.slabWidth / 2;
    for (const s of chart.sections) {
      for (const line of s.slab) {
        for (let p = 2; p < line.length; p += 2) {
          const [x0, y0, x1, y1] = line.slice(p - 2, p + 2);
          const d = Math.hypot(x1 - x0, y1 - y0) || 1;
          const [dx, dy] = [((x1 - x0) / d) * w, ((y1 - y0) / d) * w];
          const [a, b, c, e] = [[x0 - dx - dy, y0 - dy + dx], [x1 + dx - dy, y1 + dy + dx], [x1 + dx + dy, y1 + dy - dx], [x0 - dx + dy, y0 - dy - dx]];
          corners.push(...a, ...b, ...c, ...a, ...c, ...e);
        }
      }
    }
    this.#attribute(made, 'place', new Float32Array(corners), 2, gl.FLOAT, gl.STATIC_DRAW);
    gl.useProgram(made);
    gl.uniform3fv(gl.getUniformLocation(made, 'paint'), rgb(this.painter.colors.slab));
    return { made, vao, count: corners.length / 2 };
  }

  /** changed sends what seats look like now: all of them, since they are one byte each. */
  changed() {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.looks);
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, this.state.status);
  }

  draw(view) {
    const { gl, canvas, ctx, chart, painter, state, legend } = this;
    const box = view.box();
    const to = { k: view.k, x0: box.x0, y0: box.y0, box, dpr: 1 };
    const window = [box.x0, box.y0, (2 * view.k) / canvas.width, (-2 * view.k) / canvas.height];
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(...this.paper, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(this.slabs.made);
    gl.bindVertexArray(this.slabs.vao);
    gl.uniform4fv(gl.getUniformLocation(this.slabs.made, 'window'), window);
    gl.drawArrays(gl.TRIANGLES, 0, this.slabs.count);
    gl.useProgram(this.points);
    gl.bindVertexArray(this.vao);
    gl.uniform4fv(gl.getUniformLocation(this.points, 'window'), window);
    gl.uniform1f(gl.getUniformLocation(this.points, 'side'), chart.radius * view.k);
    gl.drawArrays(gl.POINTS, 0, chart.size);

    ctx.clearRect(0, 0, canvas.width, canvas.height);
    legend.paintShapes(ctx, { chart, painter }, to);
    if (chart.radius * view.k >= 7) {
      const list = [];
      chart.within(box, (i) => list.push(i));
      painter.seats(ctx, [], to, () => 0); // sizes its letters
      painter.labels(ctx, list, to, (i) => state.status[i]);
      this.rows.place(to, true);
      this.rows.paint(ctx, 'ends');
      this.rows.paint(ctx, 'edge');
    }
    this.labels.paint(ctx, { sells: this.sells }, to, []);
  }
}
