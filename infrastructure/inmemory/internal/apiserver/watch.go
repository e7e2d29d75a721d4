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

	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
)

// A watch ends by itself after this time, and up to as much again, when the client sets none.
const defaultWatchTimeout = 30 * time.Minute

// A quiet watch says how far it has come after so many changes elsewhere in the cluster, which bounds what a client that
// reconnects has missed, and after so long, by which a client knows that it is still served.
const (
	bookmarkEvery    = 32
	bookmarkInterval = time.Minute
)

// stream is a watch's open answer.
type stream struct {
	*call
	objects   objects
	flush     func() error
	first     bool
	bookmarks bool
	told      uint64 // the revision the client knows of
}

// watch sends the changes of a collection until the client goes, the time is up or the past it asked for is
// forgotten.
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
	s.told = watcher.Revision()
	if c.query.Get("sendInitialEvents") == "true" && s.bookmark(s.told, true) != nil {
		return nil
	}
	if s.flush() != nil {
		return nil
	}
	s.follow(watcher, end)
	return nil
}

// openWatch finds where the watch begins: at a revision of the client's, or now, and then mostly with the
// objects there are.
func (c *call) openWatch() (*cloud.Watcher, []*cloud.Object, error) {
	selector, err := c.selector()
	if err != nil {
		return nil, nil, err
	}
	resource, from := c.resource.groupResource(), c.query.Get("resourceVersion")
	initialEvents := c.query.Get("sendInitialEvents")
	if initialEvents != "true" && from != "" && from != "0" {
		revision, err := strconv.ParseUint(from, 10, 64)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q is no number", from))
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
	timeout := defaultWatchTimeout + rand.N(defaultWatchTimeout)
	if text := c.query.Get("timeoutSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("timeoutSeconds %q is no number", text))
		}
		if seconds > 0 {
			timeout = time.Duration(seconds) * time.Second
		}
	}
	timer := c.server.clock.NewTimer(timeout)
	return timer.C(), timer.Stop, nil
}

// follow sends changes as they come.
func (s *stream) follow(watcher *cloud.Watcher, end <-chan time.Time) {
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
			s.told = e.Object.Revision
		}
		behind := due || watcher.Revision()-s.told >= bookmarkEvery
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
			due = true // After what happened in the meantime is told: a bookmark says that there is nothing before it.
		case <-end:
			if s.bookmarks && watcher.Revision() > s.told {
				_ = s.bookmark(watcher.Revision(), false) // The answer ends here anyway.
			}
			return
		}
	}
}

func (s *stream) send(t watch.EventType, o *cloud.Object) error {
	text, err := s.objects.event(o, s.first)
	if err != nil {
		s.fail(err)
		return err
	}
	s.first = false
	return s.write(t, text)
}

func (s *stream) bookmark(revision uint64, initialEventsEnd bool) error {
	s.told = revision
	text, err := s.objects.bookmark(revision, initialEventsEnd)
	if err != nil {
		return err
	}
	return s.write(watch.Bookmark, text)
}

// fail ends the watch with a reason, unless the cluster itself is gone.
func (s *stream) fail(err error) {
	if errors.Is(err, cloud.ErrGroupDeleted) {
		return
	}
	text, _ := json.Marshal(statusOf(err)) // A Status encodes.
	_ = s.write(watch.Error, text)         // The answer ends here anyway.
}

func (s *stream) write(t watch.EventType, object []byte) error {
	_, err := fmt.Fprintf(s.w, "{\"type\":%q,\"object\":%s}\n", t, object)
	return err
}
