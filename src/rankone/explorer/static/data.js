// The data of the page: JSON and typed arrays out of one text (explorer/packing.py writes it).

const TYPES = {Float64Array, Float32Array, Int32Array, Uint8Array, Uint16Array, Uint32Array};
const EIGHT = 8;

export async function unpack(text) {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(stream).arrayBuffer();
  const size = new DataView(bytes).getUint32(0, true);
  const found = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, EIGHT, size)));
  const start = EIGHT + size, arrays = {};
  for (const [name, [kind, count, at]] of Object.entries(found.arrays)) {
    arrays[name] = new TYPES[kind](bytes, start + at, count);
  }
  return {...found, arrays};
}
