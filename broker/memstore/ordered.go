package memstore

import (
	"slices"
	"sort"
)

// chunk is the most names that lie together; an insertion moves at most so many.
const chunk = 512

// ordered is a set of names in byte order, in chunks, none of them empty. The zero
// value is empty.
type ordered struct{ chunks [][]string }

// find returns the chunk where name is or belongs, and its place there.
func (o *ordered) find(name string) (c, i int, found bool) {
	if len(o.chunks) == 0 {
		return 0, 0, false
	}
	c = max(0, sort.Search(len(o.chunks), func(c int) bool { return o.chunks[c][0] > name })-1)
	i, found = slices.BinarySearch(o.chunks[c], name)
	return c, i, found
}

// insert adds a name that is not there.
func (o *ordered) insert(name string) {
	c, i, _ := o.find(name)
	if len(o.chunks) == 0 {
		o.chunks = [][]string{{name}}
		return
	}
	o.chunks[c] = slices.Insert(o.chunks[c], i, name)
	if n := len(o.chunks[c]); n > chunk {
		upper := slices.Clone(o.chunks[c][n/2:])
		o.chunks[c] = slices.Clip(o.chunks[c][:n/2])
		o.chunks = slices.Insert(o.chunks, c+1, upper)
	}
}

// remove takes a name out that is there.
func (o *ordered) remove(name string) {
	c, i, found := o.find(name)
	if !found {
		return
	}
	o.chunks[c] = slices.Delete(o.chunks[c], i, i+1)
	if len(o.chunks[c]) == 0 {
		o.chunks = slices.Delete(o.chunks, c, c+1)
	}
}

// after returns the names that come after the given one, at most limit, 0 = all.
func (o *ordered) after(name string, limit int) []string {
	c, i, found := o.find(name)
	if found {
		i++
	}
	var out []string
	for ; c < len(o.chunks); c, i = c+1, 0 {
		names := o.chunks[c][i:]
		if limit > 0 && len(out)+len(names) >= limit {
			return append(out, names[:limit-len(out)]...)
		}
		out = append(out, names...)
	}
	return out
}
