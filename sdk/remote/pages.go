package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// pageSize is the maximum number of objects per request.
	pageSize = 500
	// maxPages ends infinite lists.
	maxPages = 1000
	// pageTimeout is the timeout for reading a page.
	pageTimeout = time.Minute
	// maxObject is the maximum size of an object: more than etcd stores.
	maxObject = 3 << 20
	// maxPage is the maximum size of a page, which is never in memory as a whole.
	maxPage = 256 << 20
	// maxKept is the maximum memory for the objects of one kind of one cluster. Five thousand Nodes take a tenth.
	maxKept = 256 << 20
)

// listing lists and watches the kind of a store. It is a ListerWatcher.
//
// A list is decoded object by object while it is received, and fields that are not cached are removed before the next object is
// read: decoded as a whole, a list can take hundreds of times its size. It is requested as JSON, which can be decoded
// in parts. Lists are read in pages and at the newest resource version, because API servers that list from their cache
// ignore the limit.
type listing struct {
	*store
	from toolscache.Getter
	// watches watches the kind.
	watches *toolscache.ListWatch
}

// IsWatchListSemanticsUnSupported disables watch lists. A watch list ends its initial
// events with a bookmark, which a client would wait for forever if the API server does not support watch lists and ignores
// the option, as that of v1.7's in-memory provider does.
func (*listing) IsWatchListSemanticsUnSupported() bool { return true }

// List implements toolscache.Lister.
func (l *listing) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// ListWithContext implements toolscache.ListerWithContext. It ignores the options and lists all objects.
func (l *listing) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	all := &pages{store: l.store}
	o := metav1.ListOptions{Limit: pageSize}
	if l.kind.Labels != nil {
		o.LabelSelector = l.kind.Labels.String()
	}
	for range maxPages {
		next, err := l.page(ctx, o, all)
		if err != nil {
			return nil, err
		}
		if o.Continue = next; next == "" {
			return all.list(), nil
		}
	}
	return nil, &RejectedError{What: fmt.Sprintf("an infinite list of %s", l.gvk.Kind)}
}

// Watch implements toolscache.Watcher.
func (l *listing) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// WatchWithContext implements toolscache.WatcherWithContext.
func (l *listing) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	// Decoding is at most one event ahead.
	q := newQuota("an event", 2*maxObject, 0)
	w, err := l.watches.WatchWithContext(within(ctx, q), o)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		q.refill()
		return e, true
	}), nil
}

// page reads a page and returns the continue token.
func (l *listing) page(ctx context.Context, o metav1.ListOptions, all *pages) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	all.quota = newQuota("an object", maxObject, maxPage)
	stream, err := l.from.Get().NamespaceIfScoped(l.kind.Namespace, l.kind.Namespace != "").Resource(l.mapping.Resource.Resource).
		VersionedParams(&o, metav1.ParameterCodec).SetHeader("Accept", runtime.ContentTypeJSON).Stream(within(ctx, all.quota))
	if err != nil {
		return "", err
	}
	defer stream.Close() // It was only read.
	return all.read(stream)
}

// pages are the objects of a list, with the fields that are cached.
type pages struct {
	*store
	quota *quota
	items []runtime.RawExtension
	// memory is the memory that they take.
	memory  int64
	version string
}

// list returns all objects as one list.
func (p *pages) list() runtime.Object {
	return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: p.version}, Items: p.items}
}

// read reads a list in JSON and returns the continue token.
func (p *pages) read(from io.Reader) (string, error) {
	d := json.NewDecoder(from)
	if err := expect(d, json.Delim('{')); err != nil {
		return "", err
	}
	var about metav1.ListMeta
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", malformed(err)
		}
		switch key {
		case "items":
			err = p.readItems(d)
		case "metadata":
			about, err = readMeta(d)
		default:
			var ignored json.RawMessage
			err = malformed(d.Decode(&ignored))
		}
		if err != nil {
			return "", err
		}
	}
	if err := expect(d, json.Delim('}')); err != nil {
		return "", err
	}
	if p.version == "" {
		p.version = about.ResourceVersion
	}
	return about.Continue, nil
}

// readMeta matches field names case-sensitively, as for objects.
func readMeta(d *json.Decoder) (metav1.ListMeta, error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return metav1.ListMeta{}, malformed(err)
	}
	var meta metav1.ListMeta
	if err := utiljson.Unmarshal(raw, &meta); err != nil {
		return metav1.ListMeta{}, errors.New("the metadata of a list is malformed") // The cause quotes it.
	}
	return meta, nil
}

func (p *pages) readItems(d *json.Decoder) error {
	start, err := d.Token()
	if err != nil || start == nil { // Null is an empty list.
		return malformed(err)
	}
	if start != json.Delim('[') {
		return fmt.Errorf("a list of %s is malformed: its items are not an array", p.gvk.Kind)
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return malformed(err)
		}
		p.quota.refill()
		if err := p.add(raw); err != nil {
			return err
		}
	}
	return expect(d, json.Delim(']'))
}

// add decodes an object and removes what is not cached.
func (p *pages) add(raw []byte) error {
	obj, ok := p.kind.Object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", p.kind.Object)
	}
	if err := utiljson.Unmarshal(raw, obj); err != nil {
		return fmt.Errorf("a %s is malformed", p.gvk.Kind) // The cause quotes it.
	}
	kept, err := p.keep(obj)
	if err != nil {
		return err
	}
	p.memory += memory(kept)
	if err := p.allow(max(p.memory, p.store.memory)); err != nil {
		return err
	}
	p.items = append(p.items, runtime.RawExtension{Object: kept})
	return nil
}

func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%q is missing", want)
	}
	return malformed(err)
}
