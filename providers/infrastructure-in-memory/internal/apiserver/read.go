package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

func (c *call) get() error {
	if _, err := c.revision(); err != nil {
		return err
	}
	o, err := c.group.Get(c.key())
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, o)
}

func (c *call) list() error {
	selector, err := c.selector()
	if err != nil {
		return err
	}
	wanted, err := c.page()
	if err != nil {
		return err
	}
	all, revision := c.group.List(c.resource.groupResource(), c.namespace, selector)
	stored, meta, err := wanted.cut(c.group, c.resource.groupResource(), all, revision)
	if err != nil {
		return err
	}
	done, err := c.reserve(stored)
	if err != nil {
		return err
	}
	defer done()
	text, err := c.objects().list(stored, meta)
	if err != nil {
		return err
	}
	c.accept.write(c.w, http.StatusOK, text)
	return nil
}

// A response of more than largeAnswer bytes is built in memory, so a cluster only serves maxLarge of them concurrently,
// and a client must read it within largeTimeout. Requests that wait longer are rejected with 429.
const (
	largeAnswer  = 1 << 20
	maxLarge     = 2
	largeTimeout = time.Minute
)

// reserve waits for capacity for a large response, and returns a function that releases it.
func (c *call) reserve(stored []*store.Object) (done func(), err error) {
	bytes := 0
	for _, o := range stored {
		bytes += len(o.Raw())
	}
	if bytes <= largeAnswer {
		return func() {}, nil
	}
	timer := c.server.clock.NewTimer(largeTimeout)
	defer timer.Stop()
	select {
	case c.endpoint.large <- struct{}{}:
	case <-timer.C():
		return nil, apierrors.NewTooManyRequests("too many concurrent large lists", 10)
	case <-c.r.Context().Done():
		return nil, c.r.Context().Err()
	}
	// Only connections in tests do not support deadlines.
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(largeTimeout))
	return func() { <-c.endpoint.large }, nil
}

// selector parses the selectors of a request.
func (c *call) selector() (store.Selector, error) {
	var s store.Selector
	var err error
	if text := c.query.Get("labelSelector"); text != "" {
		if s.Labels, err = labels.Parse(text); err != nil {
			return s, apierrors.NewBadRequest(err.Error())
		}
	}
	text := c.query.Get("fieldSelector")
	if text == "" {
		return s, nil
	}
	if s.Fields, err = fields.ParseSelector(text); err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range s.Fields.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" && !slices.Contains(c.resource.fields, r.Field) {
			return s, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
		}
	}
	return s, nil
}
