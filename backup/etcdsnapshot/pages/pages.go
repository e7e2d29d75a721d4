// Package pages checks the pages of a file of bbolt. bbolt trusts them: of a damaged file, it follows pages in circles or reads outside
// of it, which ends the process. etcd's databases are such files.
//
// What is in the keys and values of a database does not belong here.
package pages

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// ErrDamaged is matched by the error for a file that bbolt must not open.
var ErrDamaged = errors.New("the file is damaged, or no database of bbolt")

// The layout of bbolt's files, version 2, on machines with little-endian numbers, which all that etcd supports are.
const (
	magic, version = 0xED0CDAED, 2
	headerSize     = 16 // of pages: ID, flags, count, overflow
	elementSize    = 16 // of what is in pages of branches and leaves
	metaSize       = 64
	bucketSize     = 16 // of the header of a bucket: root page, sequence
	noFreelist     = ^uint64(0)

	branchPage, leafPage, freelistPage = 0x01, 0x02, 0x10
	bucketElement                      = 0x01

	// maxDepth is the largest depth of a tree. With two keys per page it would be enough for 4 billion pages.
	maxDepth = 32
)

// Check returns an error unless the first size bytes of a file are a database of bbolt that it can read: pages that refer to each other
// as a tree, with buckets of keys and values that are not nested, as etcd has them. Errors are ErrDamaged, and those of the file and
// of ctx.
func Check(ctx context.Context, file io.ReaderAt, size int64) error {
	return (&database{ctx: ctx, file: file, size: size}).check()
}

// database is a file of bbolt, as far as its structure is concerned: pages that refer to each other. check visits each at most once, and
// reads its header and the positions of its elements: what is needed to be sure that bbolt finds only valid pages, and in finite time.
type database struct {
	ctx    context.Context //nolint:containedctx // for the duration of one check
	file   io.ReaderAt
	size   int64
	page   uint64 // size of a page
	pages  uint64 // number of pages
	seen   []uint64
	buffer []byte
}

// meta is what one of the two meta pages has.
type meta struct {
	pageSize             uint64
	root, freelist       uint64
	pages, transactionID uint64
}

// meta returns a meta page, or false if it is invalid. bbolt writes them in turn, so one may be.
func (d *database) meta(offset int64) (meta, bool) {
	b := make([]byte, headerSize+metaSize)
	if _, err := d.file.ReadAt(b, offset); err != nil || offset+int64(len(b)) > d.size {
		return meta{}, false
	}
	b = b[headerSize:]
	sum := fnv.New64a()
	sum.Write(b[:56])
	if binary.LittleEndian.Uint32(b) != magic || binary.LittleEndian.Uint32(b[4:]) != version ||
		binary.LittleEndian.Uint64(b[56:]) != sum.Sum64() {
		return meta{}, false
	}
	return meta{
		pageSize: uint64(binary.LittleEndian.Uint32(b[8:])), root: binary.LittleEndian.Uint64(b[16:]),
		freelist: binary.LittleEndian.Uint64(b[32:]), pages: binary.LittleEndian.Uint64(b[40:]),
		transactionID: binary.LittleEndian.Uint64(b[48:]),
	}, true
}

// newest returns the meta page that bbolt uses.
func (d *database) newest() (meta, error) {
	first, firstValid := d.meta(0)
	for size := int64(1024); size <= 64<<10; size *= 2 {
		if firstValid && first.pageSize != uint64(size) {
			continue
		}
		second, valid := d.meta(size)
		switch {
		case valid && second.pageSize != uint64(size):
			return meta{}, d.damaged(1, "the size of pages does not match")
		case valid && (!firstValid || second.transactionID > first.transactionID):
			return second, nil
		case firstValid:
			return first, nil
		}
	}
	return meta{}, fmt.Errorf("%w: it has no valid meta page of bbolt", ErrDamaged)
}

func (d *database) check() error {
	m, err := d.newest()
	if err != nil {
		return err
	}
	if m.pages < 3 || m.pages > uint64(d.size)/m.pageSize {
		return fmt.Errorf("%w: it should have %d pages, and has %d", ErrDamaged, m.pages, uint64(d.size)/m.pageSize)
	}
	d.page, d.pages = m.pageSize, m.pages
	d.seen = make([]uint64, d.pages/64+1)
	d.seen[0] = 0b11 // the meta pages
	if err := d.tree(m.root, 0, true); err != nil {
		return err
	}
	if m.freelist == noFreelist {
		return nil
	}
	return d.freelist(m.freelist)
}

// visit marks pages as seen. It returns an error if there is no such page, or it was seen before.
func (d *database) visit(first, count uint64) error {
	if first >= d.pages || count > d.pages-first {
		return d.damaged(first, "it is behind the end")
	}
	for page := first; page < first+count; page++ {
		if d.seen[page/64]&(1<<(page%64)) != 0 {
			return d.damaged(page, "it is in use twice")
		}
		d.seen[page/64] |= 1 << (page % 64)
	}
	return nil
}

// header is what every page begins with. size is in bytes, with its overflow.
type header struct {
	flags uint16
	count int
	size  uint64
}

// open visits a page.
func (d *database) open(id uint64) (header, error) {
	if err := d.ctx.Err(); err != nil {
		return header{}, err
	}
	if id >= d.pages {
		return header{}, d.damaged(id, "it is behind the end")
	}
	b := make([]byte, headerSize)
	if _, err := d.file.ReadAt(b, int64(id*d.page)); err != nil {
		return header{}, fmt.Errorf("reading the database: %w", err)
	}
	if binary.LittleEndian.Uint64(b) != id {
		return header{}, d.damaged(id, "its ID is another one")
	}
	used := 1 + uint64(binary.LittleEndian.Uint32(b[12:]))
	h := header{flags: binary.LittleEndian.Uint16(b[8:]), count: int(binary.LittleEndian.Uint16(b[10:])), size: used * d.page}
	return h, d.visit(id, used)
}

// read returns bytes of a page, in a buffer that the next read overwrites.
func (d *database) read(id, offset uint64, length int) ([]byte, error) {
	if cap(d.buffer) < length {
		d.buffer = make([]byte, length)
	}
	b := d.buffer[:length]
	if _, err := d.file.ReadAt(b, int64(id*d.page+offset)); err != nil {
		return nil, fmt.Errorf("reading the database: %w", err)
	}
	return b, nil
}

// tree checks the tree of a bucket. That of the root holds buckets, and the others none: etcd does not nest them.
func (d *database) tree(id uint64, depth int, root bool) error {
	if depth > maxDepth {
		return d.damaged(id, "its tree is too deep")
	}
	h, err := d.open(id)
	if err != nil {
		return err
	}
	if (h.flags != branchPage && h.flags != leafPage) || headerSize+uint64(h.count)*elementSize > h.size {
		return d.damaged(id, "it is no page of a tree")
	}
	if h.flags == branchPage && h.count == 0 {
		return d.damaged(id, "it is an empty branch")
	}
	table, err := d.read(id, headerSize, h.count*elementSize)
	if err != nil {
		return err
	}
	var children []uint64
	var buckets []position
	for i := range h.count {
		p, valid := element(table[i*elementSize:], i, h.flags, h.size)
		switch {
		case !valid:
			return d.damaged(id, "a key or value is outside of it")
		case h.flags == branchPage:
			children = append(children, p.child)
		case p.bucket != root:
			return d.damaged(id, "its values are of the wrong sort")
		case root:
			buckets = append(buckets, p)
		}
	}
	for _, child := range children {
		if err := d.tree(child, depth+1, root); err != nil {
			return err
		}
	}
	for _, b := range buckets {
		if err := d.bucket(id, b); err != nil {
			return err
		}
	}
	return nil
}

// position is where an element of a page is.
type position struct {
	child         uint64 // of branches
	bucket        bool
	offset, value uint64 // of the value in the page, and its length
}

// element returns an element of a page, and false if it reaches beyond its end.
func element(b []byte, index int, flags uint16, size uint64) (position, bool) {
	number := func(at int) uint64 { return uint64(binary.LittleEndian.Uint32(b[at:])) }
	start := uint64(headerSize + index*elementSize)
	if flags == branchPage {
		return position{child: binary.LittleEndian.Uint64(b[8:])}, start+number(0)+number(4) <= size
	}
	offset := start + number(4) + number(8)
	return position{bucket: number(0)&bucketElement != 0, offset: offset, value: number(12)}, offset+number(12) <= size
}

// bucket checks a bucket, which has a tree, or its only page as its value.
func (d *database) bucket(id uint64, p position) error {
	if p.value < bucketSize {
		return d.damaged(id, "a bucket is truncated")
	}
	if p.value > d.page {
		return d.damaged(id, "a bucket is too large")
	}
	b, err := d.read(id, p.offset, int(p.value))
	if err != nil {
		return err
	}
	if root := binary.LittleEndian.Uint64(b); root != 0 {
		return d.tree(root, 1, false)
	}
	if b = b[bucketSize:]; len(b) < headerSize {
		return d.damaged(id, "a bucket is truncated")
	}
	count := int(binary.LittleEndian.Uint16(b[10:]))
	if binary.LittleEndian.Uint16(b[8:]) != leafPage || headerSize+count*elementSize > len(b) {
		return d.damaged(id, "a small bucket is invalid")
	}
	for i := range count {
		if e, valid := element(b[headerSize+i*elementSize:], i, leafPage, uint64(len(b))); !valid || e.bucket {
			return d.damaged(id, "a small bucket is invalid")
		}
	}
	return nil
}

// freelist checks the list of free pages, which bbolt reads when it opens a database to write.
func (d *database) freelist(id uint64) error {
	h, err := d.open(id)
	if err != nil {
		return err
	}
	offset, count := uint64(headerSize), uint64(h.count)
	if count == 0xFFFF { // The number does not fit into the header.
		b, err := d.read(id, offset, 8)
		if err != nil {
			return err
		}
		offset, count = offset+8, binary.LittleEndian.Uint64(b)
	}
	if h.flags != freelistPage || count > (h.size-offset)/8 {
		return d.damaged(id, "it is no list of free pages")
	}
	for ; count > 0; count-- {
		b, err := d.read(id, offset, 8)
		if err != nil {
			return err
		}
		if err := d.visit(binary.LittleEndian.Uint64(b), 1); err != nil {
			return err
		}
		offset += 8
	}
	return nil
}

func (d *database) damaged(page uint64, why string) error {
	return fmt.Errorf("%w: page %d is invalid: %s", ErrDamaged, page, why)
}
