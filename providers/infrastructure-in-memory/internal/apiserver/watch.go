package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// The default timeout of a watch is between this and twice this.
const defaultWatchTimeout = 30 * time.Minute

// A quiet watch gets a bookmark after this many changes elsewhere in the cluster, which bounds what a client missed when
// it reconnects, and after this interval, which shows clients that the watch is alive.
const (
	bookmarkEvery    = 32
	bookmarkInterval = time.Minute
)

// stream is the response of a watch.
type stream struct {
	*call
	objects   objects
	flush     func() error
	first     bool
	bookmarks bool
	sent      uint64 // the revision last sent to the client
}

// watch sends the changes of a collection until the client disconnects, the watch times out or its revision is too old.
func (c *call) watch() error {
	s := &stream{call: c, objects: c.objects(), first: true, bookmarks: c.query.Get("allowWatchBookmarks") == "true"}
	s.flush = http.NewResponseController(c.w).Flush
	s.objects.yaml = false
	watcher, initial, err := c.openWatch()
	if err != nil {
		return err
	}
	end, stop, err := c.watchEnd()
	if err != nil {
		return err
	}
	defer stop()
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)
	for _, o := range initial {
		if s.send(watch.Added, o) != nil {
			return nil
		}
	}
	s.sent = watcher.Revision()
	if c.query.Get("sendInitialEvents") == "true" && s.bookmark(s.sent, true) != nil {
		return nil
	}
	if s.flush() != nil {
		return nil
	}
	s.follow(watcher, end)
	return nil
}

// openWatch returns where the watch begins: at the client's revision, or at the current one, usually with the existing
// objects.
func (c *call) openWatch() (*store.Watcher, []*store.Object, error) {
	selector, err := c.selector()
	if err != nil {
		return nil, nil, err
	}
	resource, from := c.resource.groupResource(), c.query.Get("resourceVersion")
	initialEvents := c.query.Get("sendInitialEvents")
	if initialEvents != "true" && from != "" && from != "0" {
		revision, err := strconv.ParseUint(from, 10, 64)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("invalid resourceVersion %q", from))
		}
		watcher, err := c.group.Watch(resource, c.namespace, revision, selector)
		if err != nil {
			return nil, nil, err
		}
		return watcher, nil, nil
	}
	stored, revision := c.group.List(resource, c.namespace, selector)
	if initialEvents == "false" {
		stored = nil
	}
	watcher, err := c.group.Watch(resource, c.namespace, revision, selector)
	return watcher, stored, err
}

// watchEnd returns when the watch ends.
func (c *call) watchEnd() (<-chan time.Time, func() bool, error) {
	timeout := defaultWatchTimeout + rand.N(defaultWatchTimeout) //nolint:gosec // It spreads load.
	if text := c.query.Get("timeoutSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("invalid timeoutSeconds %q", text))
		}
		if seconds > 0 {
			timeout = time.Duration(seconds) * time.Second
		}
	}
	timer := c.server.clock.NewTimer(timeout)
	return timer.C(), timer.Stop, nil
}

// follow sends changes as they occur.
func (s *stream) follow(watcher *store.Watcher, end <-chan time.Time) {
	quiet := s.server.clock.NewTimer(bookmarkInterval)
	defer quiet.Stop()
	for due := false; ; {
		if s.group.AwaitResponsive(s.r.Context()) != nil {
			return
		}
		if !s.endpoint.Serves() {
			hangUp(connOf(s.r.Context()))
		}
		events, changed, err := watcher.Poll()
		if err != nil {
			s.fail(err)
			return
		}
		for _, e := range events {
			if s.send(e.Type, e.Object) != nil {
				return
			}
			s.sent = e.Object.Revision
		}
		behind := due || watcher.Revision()-s.sent >= bookmarkEvery
		due = false
		if behind && s.bookmarks && s.bookmark(watcher.Revision(), false) != nil {
			return
		}
		if (len(events) > 0 || behind) && s.flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-s.r.Context().Done():
			return
		case <-quiet.C():
			quiet.Reset(bookmarkInterval)
			due = true // Send pending changes first: a bookmark implies that there are none before it.
		case <-end:
			if s.bookmarks && watcher.Revision() > s.sent {
				_ = s.bookmark(watcher.Revision(), false) // The response ends here anyway.
			}
			return
		}
	}
}

func (s *stream) send(t watch.EventType, o *store.Object) error {
	text, err := s.objects.event(o, s.first)
	if err != nil {
		s.fail(err)
		return err
	}
	s.first = false
	return s.write(t, text)
}

func (s *stream) bookmark(revision uint64, initialEventsEnd bool) error {
	s.sent = revision
	text, err := s.objects.bookmark(revision, initialEventsEnd)
	if err != nil {
		return err
	}
	return s.write(watch.Bookmark, text)
}

// fail ends the watch with an error, unless the cluster itself is gone.
func (s *stream) fail(err error) {
	if errors.Is(err, store.ErrDeleted) {
		return
	}
	text, _ := json.Marshal(statusOf(err)) // never fails
	_ = s.write(watch.Error, text)         // The response ends here anyway.
}

func (s *stream) write(t watch.EventType, object []byte) error {
	_, err := fmt.Fprintf(s.w, "{\"type\":%q,\"object\":%s}\n", t, object)
	return err
}
