package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
)

// page is which part of a collection, as of when, a list is to show. The store knows only the present: a list of
// the past is given as long as nothing of its kind has changed since, and is 410 Gone afterwards.
type page struct {
	// limit is how many objects are wanted, 0 for all.
	limit int
	// after is what the page before ended with.
	after string
	// revision is that of which the list has to be; exact is false when later will do as well.
	revision uint64
	exact    bool
}

// token is what a client hands back for the next page.
type token struct {
	// Revision is that of the first page, 0 when the client agreed to pages that do not fit together.
	Revision uint64 `json:"rv"`
	// After is what the page before ended with.
	After string `json:"after"`
}

// String encodes the token as clients hand it back.
func (t token) String() string {
	text, _ := json.Marshal(t) // Of a string and a number.
	return base64.RawURLEncoding.EncodeToString(text)
}

// page reads which part of a collection the request asks for.
func (c *call) page() (page, error) {
	var p page
	var err error
	if text := c.query.Get("limit"); text != "" {
		if p.limit, err = strconv.Atoi(text); err != nil || p.limit < 0 {
			return p, apierrors.NewBadRequest(fmt.Sprintf("limit %q is no number of objects", text))
		}
	}
	if p.revision, err = c.revision(); err != nil {
		return p, err
	}
	match := c.query.Get("resourceVersionMatch")
	p.exact = match == string(metav1.ResourceVersionMatchExact) || match == "" && p.limit > 0 && p.revision > 0
	text := c.query.Get("continue")
	if text == "" {
		return p, nil
	}
	var t token
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &t)
	}
	if err != nil {
		return p, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
	}
	p.after, p.revision, p.exact = t.After, t.Revision, t.Revision > 0
	return p, nil
}

// revision reads the resource version of a get or a list: 0 when any will do.
func (c *call) revision() (uint64, error) {
	text := c.query.Get("resourceVersion")
	if text == "" {
		return 0, nil
	}
	revision, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q is no number", text))
	}
	return revision, c.group.CheckReached(revision)
}

// cut returns the page of a list that was read at a revision, with the list's metadata.
func (p page) cut(g *cloud.Group, r cloud.Resource, all []*cloud.Object, revision uint64) ([]*cloud.Object, metav1.ListMeta, error) {
	if p.exact {
		if !g.UnchangedSince(r, p.revision) {
			return nil, metav1.ListMeta{}, p.expired()
		}
		revision = p.revision
	}
	rest := all[p.start(all):]
	meta := metav1.ListMeta{ResourceVersion: formatRevision(revision)}
	if p.limit == 0 || len(rest) <= p.limit {
		return rest, meta, nil
	}
	remaining := int64(len(rest) - p.limit)
	rest = rest[:p.limit]
	meta.RemainingItemCount = &remaining
	meta.Continue = token{Revision: revision, After: position(rest[len(rest)-1])}.String()
	return rest, meta, nil
}

// start finds where the page begins. Lists are sorted by namespace and name.
func (p page) start(all []*cloud.Object) int {
	if p.after == "" {
		return 0
	}
	at, found := slices.BinarySearchFunc(all, p.after, func(o *cloud.Object, after string) int {
		return strings.Compare(position(o), after)
	})
	if found {
		at++
	}
	return at
}

// position sorts as lists do: no name contains what separates the two.
func position(o *cloud.Object) string { return o.Key.Namespace + "\x00" + o.Key.Name }

// expired says that the past is gone. A client in the middle of a list may go on in the present.
func (p page) expired() error {
	if p.after == "" {
		return apierrors.NewResourceExpired(fmt.Sprintf("The resourceVersion for the provided list is too old: %d", p.revision))
	}
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results")
	err.ErrStatus.Continue = token{After: p.after}.String()
	return err
}
