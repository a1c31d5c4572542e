// Package januscli is a person's side of a Janus videoroom without media: it opens sessions over the HTTP
// transport, joins rooms, keeps alive and leaves, as a browser's library would. Tests and the lab's load use it. It
// is built on the standard library alone.
package januscli
