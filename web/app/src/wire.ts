// What the server sends and is sent, as JSON. Amounts are minor units of the event's
// currency, times are RFC 3339 unless they are said to be Unix milliseconds, and what a
// "?" marks is left out where it says nothing.

/** Point is a place on a chart, in its own units. */
export interface Point { x: number; y: number }

/** Shape is an outline: a closed polygon. */
export interface Shape {
  label?: string;
  color?: string; // CSS colour
  points: Point[];
}

/** Category groups seats of one price. */
export interface Category {
  name: string;
  color?: string; // CSS colour
}

/** Seat is one numbered seat of a row. */
export interface Seat {
  ticketId: string; // stable, and unique in the chart
  i: number; // index in maps and frames
  label: string;
  x: number;
  y: number;
  category: string;
  break?: boolean; // the seat before it is no neighbour
  accessible?: boolean;
  companion?: boolean;
  restricted?: boolean;
}

export interface Row { label: string; seats: Seat[] }

export interface Section { id: string; name: string; rows: Row[] }

/** Area is a general-admission area of a chart. */
export interface Area {
  id: string;
  name: string;
  category: string;
  capacity: number;
  points: Point[];
}

/** Chart is GET /v1/charts/{sha}.json. */
export interface Chart {
  name: string;
  width: number;
  height: number;
  focal: Point;
  stage?: Shape;
  shapes?: Shape[];
  categories: Category[];
  sections: Section[];
  areas?: Area[];
  seats: number; // above every i
}

/** Currency is how amounts of an event are to be read. */
export interface Currency {
  currency: string; // ISO 4217
  decimals: number; // so many digits of an amount stand after the point
}

/** Summary is an event in a list: GET /v1/events/search. */
export interface Summary extends Currency {
  id: string;
  name: string;
  venue: string;
  zone: string; // IANA
  startsAt: string;
  opensAt: string;
  mode: 'hot' | 'ordinary';
  state: 'closed' | 'open' | 'cancelled';
  open: boolean; // bookings are taken now
  holds: boolean; // they hold their seats
  queue: boolean; // it has a waiting room
}

/** Found is a page of events. */
export interface Found { events: Summary[]; next: number | null }

/** Event is GET /v1/events/{event}. */
export interface Event extends Summary {
  guarded: boolean; // the map asks for a session or a ticket
  orphans: string;
  chart: string; // SHA-256
  prices: Price[];
  fees: Fee[];
  areas: PricedArea[];
  holdSeconds: number;
  paySeconds: number;
  capSeconds: number;
  seatsPerBooking: number;
  seatsPerUser: number;
  seatsPerCard?: number;
  holdsPerUser: number;
}

/** Price is that of one seat or place of a category. */
export interface Price {
  category: string;
  color?: string;
  amount: number; // without fees
  allIn: number; // bought alone, with all fees
}

export interface Fee {
  name: string;
  per: 'ticket' | 'percent' | 'order';
  amount?: number;
  basisPoints?: number;
}

/** PricedArea is an area as an event sells it. */
export interface PricedArea { area: string; name: string; category: string; capacity: number }

/** Hello opens a stream. */
export interface Hello {
  n: number;
  chart: string;
  at: number; // Unix milliseconds
}

/** Snapshot is the whole state of a map; it supersedes every delta up to n. */
export interface Snapshot {
  n: number;
  chart: string; // SHA-256
  map: string; // base64, two bits a seat
  areas: Record<string, number>; // places left
}

/** Delta is what changed between two numbers. */
export interface Delta {
  n: number;
  prev: number;
  at: number; // Unix milliseconds
  reserved: number[];
  released: number[];
  booked: number[];
  closed: number[];
  areas: Record<string, number>; // places left
}

/** Reset says that numbers before this one may have forked. */
export interface Reset { n: number }

/** Beat says that a stream lives. */
export interface Beat { n: number; at: number }

/** Degraded says why frames may be late, and where to poll; no reason: it is over. A stream
 * that is refused says when to come back. */
export interface Degraded { reason: string; poll: string; retry_ms?: number }

/** Frames are those of the stream of a map, by the names of its events. */
export interface Frames { hello: Hello; snapshot: Snapshot; delta: Delta; reset: Reset; beat: Beat; degraded: Degraded }

/** Polled is GET /v1/events/{event}/seatmap. */
export interface Polled extends Snapshot {
  mode: 'hot' | 'ordinary';
  live: string | null; // where it is pushed
  poll_after_ms: number;
  stale?: boolean;
}

/** Since is GET /v1/events/{event}/seatmap?since=, where the number is known. */
export interface Since extends Delta { chart: string }

/** LiveTicket opens the stream of a guarded map, once. */
export interface LiveTicket { ticket: string; expiresAt: string; live: string }

/** Wish is what the house chooses by. */
export interface Wish {
  quantity: number;
  categories?: string[]; // names; without any, all
  accessible?: number; // wheelchair spaces among them
}

/** Take asks for a booking: seats, or the house's choice of them, and places. */
export interface Take {
  ticketIds?: string[];
  bestAvailable?: Wish;
  areas?: { area: string; quantity: number }[];
}

export interface Money { amount: number; currency: string }

/** Booking is an order as a hold answers it. */
export interface Booking {
  bookingId: string;
  state: 'held' | 'paying' | 'sold' | 'refunded' | 'lost' | 'released' | 'expired';
  expiresAt?: string;
  cap?: string; // it is never extended beyond this
  holds?: boolean; // false: nothing is held
  seats: QuotedSeat[];
  areas: QuotedArea[];
  fees: QuotedFee[];
  total: Money;
  together?: boolean;
  warnings?: Warning[];
}

/** Order is a booking as it is read: GET /v1/bookings/{booking}. */
export interface Order extends Booking {
  reason?: string; // why it was lost, or that it ended with its event
  lost?: string[]; // ticketIds that are gone
  tickets?: Ticket[];
  attempts?: Attempt[]; // the oldest first
  refunded?: Money;
}

/** Listed is an order in GET /v1/me/bookings. */
export interface Listed extends Order {
  bookedAt: string;
  event: Pick<Summary, 'id' | 'name' | 'venue' | 'zone' | 'startsAt'>;
}

/** Mine is a page of the orders of an account, the newest first. */
export interface Mine { bookings: Listed[]; next?: string }

export interface QuotedSeat {
  i: number;
  ticketId: string;
  label: string;
  section: string;
  row: string;
  category: string;
  price: number; // without fees
  allIn: number;
}

export interface QuotedArea {
  area: string;
  quantity: number;
  price: number; // of one place, without fees
  allIn: number; // of all of them
}

export interface QuotedFee { name: string; amount: number }

/** Warning is what a shopper may want to know of the seats that are held. */
export interface Warning { code: string; detail: string; seats: string[] }

/** Ticket is one seat or place that was sold. */
export interface Ticket {
  id: string;
  ticketId?: string;
  section?: string;
  row?: string;
  label?: string;
  area?: string;
  price: number;
  allIn: number;
  status: 'pending' | 'valid' | 'void' | 'refunding' | 'refunded' | 'refund_failed';
  qr?: string; // of a valid one
}

/** Attempt is a try at paying. */
export interface Attempt { id: string; state: string; provider: string; reason?: string }

/** Receipt is the answer to a payment. */
export interface Receipt {
  bookingId: string;
  attempt: Attempt;
  state: Booking['state'];
  expiresAt?: string;
  total: Money;
  action?: Action;
}

/** Action is the step of its shopper's that a payment waits for. */
export interface Action { clientSecret?: string; url?: string }

/** Payments is GET /v1/payments/config: who takes them. */
export interface Payments {
  provider: string;
  script?: string;
  publishableKey?: string;
  methods?: string[];
}

/** Line is a frame of a waiting room, and GET /v1/queue/{event}. */
export interface Line {
  n: number;
  prev: number;
  at: number; // Unix milliseconds
  room?: number; // which of those the event had, one after the other; older servers do not say it
  state: 'draw' | 'closed' | 'open' | 'paused' | 'over';
  serving: number; // numbers up to it are called
  rate: number; // a minute
  pace: number;
  slowed: string | null;
  waiting: number;
  inside: number;
  seatsLeft: number;
  eta: Eta | null;
  joinsAt: string;
  closesAt: string | null; // of the list of the draw
  opensAt: string;
  draw: { state: 'announced' | 'frozen' | 'drawn'; tickets: number } | null;
  asks?: 'code' | 'proof'; // of who joins
  since: number; // Unix milliseconds
  poll_after_ms: number;
}

/** Eta is how many are called a minute: the slower of what is set and what was measured, and the faster. */
export interface Eta { slow: number; fast: number }

/** Join is what whoever joins a line brings. */
export interface Join { place?: string; room?: number; code?: string; altcha?: string; waited?: string }

/** Figures is GET /v1/admin/events/{event}/figures. */
export interface Figures {
  seats: { available: number; held: number; sold: number; unavailable: number };
  holdsKnown: boolean;
  areas: { area: string; name: string; capacity: number; sold: number }[];
  tickets: number;
  money: Money & Currency;
}

/** Room is GET /v1/admin/rooms/{event}. */
export interface Room {
  state: Line['state'];
  rate: number; // people a minute
  burst: number;
  cap: number;
  sessionSeconds: number;
  frame?: Line;
  suspected?: number;
}

/** Jobs is GET /v1/admin/jobs. */
export interface Jobs { jobs: { id: number; kind: string }[]; next?: number }

/** Place is what an account has in a line. */
export interface Place {
  ticket: string;
  state: Line['state'];
  draw?: boolean; // takes part in the draw: there is no number yet
  nonce?: string;
  number?: number;
  insideUntil?: string;
  place?: string; // signed, to be kept
  announcement?: string; // SHA-256
}

/** Pass lets its account in. */
export interface Pass { pass: string; expiresAt: string }

/** Turn is the answer to who asks for a pass: it, or that the number is not called, or how many called ones go first. */
export type Turn = Pass | { number: number } | { ahead: number };

/** Work is a challenge, as the worker gets it. */
export interface Work { algorithm: string; challenge: string; maxnumber: number; salt: string; signature: string }

/** Wait stands in for work: it is good after so many seconds. */
export interface Wait { waited: string; seconds: number }

/** Draw is GET /v1/queue/{event}/draw: all that is published of it so far but its tickets. */
export type Draw = Undrawn | Drawn;

export interface Undrawn {
  state: 'announced' | 'frozen';
  announcement: Announcement;
  digest: string; // SHA-256 of the announcement
  tickets?: number;
  root?: string;
  frozenAt?: string;
}

export interface Drawn {
  state: 'drawn';
  announcement: Announcement;
  digest: string;
  tickets: number; // older servers leave it out where it is 0
  root: string; // of the tree over the list
  frozenAt: string;
  seed: string;
  told?: string; // the number of somebody else
  key: string;
  drawnAt: string;
  shards: number;
  list: string; // where all of it is read
}

/** Announcement is what is published of a draw before anybody can join. */
export interface Announcement {
  event: string;
  closes: string;
  commitment: string; // SHA-256 of the seed
  external: External;
}

/** External is whose number is used beside the house's: nobody's, a beacon's or a committer's. */
export type External =
  | { kind: 'none' }
  | { kind: 'drand'; publicKey: string; genesis: number; period: number; round: number }
  | { kind: 'committer'; name: string; commitment: string };

/** Ranked is a ticket on the list of a draw: its id, the number beside it, its rank. */
export type Ranked = [ticket: string, nonce: string, rank: number];

/** Shard is a part of that list, and what leads from it to the root. */
export interface Shard { shard: number; tickets: Ranked[]; path: string[] }

/** Keys are what signatures of the house are checked with: GET /v1/passes/keys. */
export interface Keys { keys: (JsonWebKey & { kid: string })[] }

/** Head is the first line of the whole list. */
export interface Head { announcement: Announcement; tickets: number; root: string; seed: string; told?: string; key: string }

/** Problem is every answer that is none: RFC 9457, and what some codes add. */
export interface Problem {
  status: number;
  code: string; // stable
  detail: string;
  seats?: string[]; // ticketIds
  reason?: string;
}
