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
	// pageSize is how many objects are asked for at a time.
	pageSize = 500
	// maxPages ends lists that never do.
	maxPages = 1000
	// pageTimeout bounds reading a page.
	pageTimeout = time.Minute
	// maxObject bounds what is read of one object: more than etcd stores.
	maxObject = 3 << 20
	// maxPage bounds what is read of a page. It is never in memory as a whole.
	maxPage = 256 << 20
	// maxKept bounds the memory that the objects of one kind of one cluster take. Five thousand Nodes take a tenth.
	maxKept = 256 << 20
)

// listing lists and watches the kind of a store. It is a ListerWatcher.
//
// A list is decoded object by object as it comes in, and what is not kept of an object is dropped before the next one is
// read: a list decoded as a whole can take hundreds of times its own size. It is read from JSON, which can be taken apart
// like that. Lists are read in pages and at the newest resource version, because API servers that list from their cache
// ignore that a page is asked for.
type listing struct {
	*store
	from toolscache.Getter
	// watches is how the kind is watched.
	watches *toolscache.ListWatch
}

// IsWatchListSemanticsUnSupported says that lists do not come as watches. A watch that begins with all there is ends that
// part with a bookmark, and for this a client waits in vain if the API server does not know such watches and ignores
// what asks for them, as that of v1.7's in-memory provider does.
func (*listing) IsWatchListSemanticsUnSupported() bool { return true }

// List implements toolscache.Lister.
func (l *listing) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// ListWithContext implements toolscache.ListerWithContext. It lists everything, whatever page is asked for.
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
	return nil, &RefusedError{What: fmt.Sprintf("a list of %s that does not end", l.gvk.Kind)}
}

// Watch implements toolscache.Watcher.
func (l *listing) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// WatchWithContext implements toolscache.WatcherWithContext.
func (l *listing) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	// Decoding is an event ahead of us at most.
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

// page reads a page and returns how to continue.
func (l *listing) page(ctx context.Context, o metav1.ListOptions, all *pages) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	all.quota = newQuota("an object", maxObject, maxPage)
	stream, err := l.from.Get().NamespaceIfScoped(l.kind.Namespace, l.kind.Namespace != "").Resource(l.mapping.Resource.Resource).
		VersionedParams(&o, metav1.ParameterCodec).SetHeader("Accept", runtime.ContentTypeJSON).Stream(within(ctx, all.quota))
	if err != nil {
		return "", err
	}
	defer stream.Close() // it was only read from
	return all.read(stream)
}

// pages are what is kept of the pages of a list.
type pages struct {
	*store
	quota *quota
	items []runtime.RawExtension
	// memory is what they take.
	memory  int64
	version string
}

// list is all of them as one list.
func (p *pages) list() runtime.Object {
	return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: p.version}, Items: p.items}
}

// read reads a list from JSON and returns how to continue.
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

// readMeta takes the names of fields literally, as for objects.
func readMeta(d *json.Decoder) (metav1.ListMeta, error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return metav1.ListMeta{}, malformed(err)
	}
	var meta metav1.ListMeta
	if err := utiljson.Unmarshal(raw, &meta); err != nil {
		return metav1.ListMeta{}, errors.New("the metadata of a list is malformed") // the cause quotes it
	}
	return meta, nil
}

func (p *pages) readItems(d *json.Decoder) error {
	start, err := d.Token()
	if err != nil || start == nil { // null is an empty list
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

// add decodes an object and keeps what is kept of it.
func (p *pages) add(raw []byte) error {
	obj, ok := p.kind.Object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", p.kind.Object)
	}
	if err := utiljson.Unmarshal(raw, obj); err != nil {
		return fmt.Errorf("a %s is malformed", p.gvk.Kind) // the cause quotes it
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
		err = fmt.Errorf("it has no %q where there should be one", want)
	}
	return malformed(err)
}

// malformed is an error of reading JSON.
func malformed(err error) error {
	if err != nil {
		return fmt.Errorf("reading a list: %w", err)
	}
	return nil
}
