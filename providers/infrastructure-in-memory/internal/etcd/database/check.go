package database

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// Sizes and flags of bbolt's file format. Numbers have the byte order of the machine.
const (
	headerSize  = 16 // of a page
	elementSize = 16 // of an entry of a page
	bucketSize  = 16 // of a bucket in an entry
	metaSize    = 64

	metaMagic   = 0xED0CDAED
	metaVersion = 2

	branchFlag = 0x01
	leafFlag   = 0x02
	bucketFlag = 0x01 // of an entry

	maxPageSize = 64 << 10
	// maxNode limits a page with those that continue it, in bytes. The values of etcd are smaller.
	maxNode = 16 << 20
)

// errDamaged is the error for a file whose pages are not a tree. bbolt would read it forever, or outside of it.
var errDamaged = errors.New("the file is damaged, or no database of bbolt")

// checker checks that the pages of a file are a tree, as bbolt assumes without checking.
type checker struct {
	from     io.ReaderAt
	pageSize uint64
	pages    uint64 // how many pages the database has
	seen     []bool
	queue    []uint64
}

// check returns an error unless the pages of a file of this size are a tree: bbolt trusts them.
func check(from io.ReaderAt, size int64) error {
	c := &checker{from: from}
	if err := c.readMeta(uint64(max(size, 0))); err != nil {
		return err
	}
	for len(c.queue) > 0 {
		id := c.queue[len(c.queue)-1]
		c.queue = c.queue[:len(c.queue)-1]
		if err := c.visit(id); err != nil {
			return err
		}
	}
	return nil
}

// readMeta reads the two pages that describe the database, of which the later one applies. Both must be valid, as after an orderly end.
func (c *checker) readMeta(size uint64) error {
	var root, latest uint64
	for i := range uint64(2) {
		b := make([]byte, headerSize+metaSize)
		if _, err := c.from.ReadAt(b, int64(i*c.pageSize)); err != nil {
			return errDamaged
		}
		b = b[headerSize:]
		order := binary.NativeEndian
		sum := fnv.New64a()
		_, _ = sum.Write(b[:metaSize-8]) // never fails
		if order.Uint32(b) != metaMagic || order.Uint32(b[4:]) != metaVersion || order.Uint64(b[56:]) != sum.Sum64() {
			return errDamaged
		}
		pageSize, pages, tx := uint64(order.Uint32(b[8:])), order.Uint64(b[40:]), order.Uint64(b[48:])
		if pageSize < 1<<10 || pageSize > maxPageSize || pageSize&(pageSize-1) != 0 || i > 0 && pageSize != c.pageSize || pages > size/pageSize {
			return errDamaged
		}
		c.pageSize = pageSize
		if i == 0 || tx > latest {
			latest, root, c.pages = tx, order.Uint64(b[16:]), pages
		}
	}
	c.seen = make([]bool, c.pages)
	return c.push(root)
}

// push adds a page that was not seen before.
func (c *checker) push(id uint64) error {
	if id < 2 || id >= c.pages || c.seen[id] {
		return errDamaged
	}
	c.seen[id] = true
	c.queue = append(c.queue, id)
	return nil
}

// visit checks a page, and adds those that it refers to.
func (c *checker) visit(id uint64) error {
	header := make([]byte, headerSize)
	if _, err := c.from.ReadAt(header, int64(id*c.pageSize)); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	more := uint64(binary.NativeEndian.Uint32(header[12:]))
	if binary.NativeEndian.Uint64(header) != id || id+more >= c.pages || (more+1)*c.pageSize > maxNode {
		return errDamaged
	}
	for next := id + 1; next <= id+more; next++ {
		if c.seen[next] {
			return errDamaged
		}
		c.seen[next] = true
	}
	page := make([]byte, (more+1)*c.pageSize)
	if _, err := c.from.ReadAt(page, int64(id*c.pageSize)); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	switch binary.NativeEndian.Uint16(page[8:]) {
	case branchFlag:
		return c.branch(page)
	case leafFlag:
		return c.leaf(page, true)
	}
	return errDamaged
}

// elements returns the number of entries of a page, all of which it has.
func elements(page []byte) (int, error) {
	if len(page) < headerSize {
		return 0, errDamaged
	}
	n := int(binary.NativeEndian.Uint16(page[10:]))
	if headerSize+n*elementSize > len(page) {
		return 0, errDamaged
	}
	return n, nil
}

// branch checks a page that refers to others.
func (c *checker) branch(page []byte) error {
	n, err := elements(page)
	if err != nil || n == 0 {
		return errDamaged
	}
	for i := range n {
		at := uint64(headerSize + i*elementSize)
		position, key := binary.NativeEndian.Uint32(page[at:]), binary.NativeEndian.Uint32(page[at+4:])
		if at+uint64(position)+uint64(key) > uint64(len(page)) {
			return errDamaged
		}
		if err := c.push(binary.NativeEndian.Uint64(page[at+8:])); err != nil {
			return err
		}
	}
	return nil
}

// leaf checks a page with keys and values, which may be within a value. Only others have buckets.
func (c *checker) leaf(page []byte, buckets bool) error {
	n, err := elements(page)
	if err != nil {
		return err
	}
	order := binary.NativeEndian
	for i := range n {
		at := uint64(headerSize + i*elementSize)
		begin := at + uint64(order.Uint32(page[at+4:])) + uint64(order.Uint32(page[at+8:]))
		end := begin + uint64(order.Uint32(page[at+12:]))
		if end > uint64(len(page)) {
			return errDamaged
		}
		if order.Uint32(page[at:])&bucketFlag == 0 {
			continue
		}
		if !buckets || end-begin < bucketSize {
			return errDamaged
		}
		if root := order.Uint64(page[begin:]); root != 0 {
			err = c.push(root)
		} else if err = inline(page[begin+bucketSize : end]); err == nil {
			err = c.leaf(page[begin+bucketSize:end], false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inline checks the page within a value: it must be a leaf.
func inline(page []byte) error {
	if len(page) < headerSize || binary.NativeEndian.Uint16(page[8:]) != leafFlag {
		return errDamaged
	}
	return nil
}
