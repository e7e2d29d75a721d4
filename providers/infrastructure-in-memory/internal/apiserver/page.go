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

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// page is the page of a collection that a list requests, and its revision. The store only has current objects: a list at
// an older revision works as long as nothing of its kind has changed, and is 410 Gone afterwards.
type page struct {
	// limit is the number of objects, 0 for all.
	limit int
	// after is the last object of the previous page.
	after string
	// revision is the revision of the list; exact is false if a later one is allowed.
	revision uint64
	exact    bool
}

// token is the decoded continue token.
type token struct {
	// Revision is that of the first page, 0 if the client accepted inconsistent pages.
	Revision uint64 `json:"rv"`
	// After is the last object of the previous page.
	After string `json:"after"`
}

// String encodes the token.
func (t token) String() string {
	text, _ := json.Marshal(t) // never fails
	return base64.RawURLEncoding.EncodeToString(text)
}

// page parses the requested page.
func (c *call) page() (page, error) {
	var p page
	var err error
	if text := c.query.Get("limit"); text != "" {
		if p.limit, err = strconv.Atoi(text); err != nil || p.limit < 0 {
			return p, apierrors.NewBadRequest(fmt.Sprintf("invalid limit %q", text))
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
		return p, apierrors.NewBadRequest("invalid continue token: " + err.Error())
	}
	p.after, p.revision, p.exact = t.After, t.Revision, t.Revision > 0
	return p, nil
}

// revision parses the resource version of a get or a list: 0 for any.
func (c *call) revision() (uint64, error) {
	text := c.query.Get("resourceVersion")
	if text == "" {
		return 0, nil
	}
	revision, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resourceVersion %q", text))
	}
	return revision, c.group.CheckReached(revision)
}

// cut returns the requested page of a list at a revision, with the list's metadata.
func (p page) cut(g *cloud.Group, r store.Resource, all []*store.Object, revision uint64) ([]*store.Object, metav1.ListMeta, error) {
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

// start returns where the page begins. Lists are sorted by namespace and name.
func (p page) start(all []*store.Object) int {
	if p.after == "" {
		return 0
	}
	at, found := slices.BinarySearchFunc(all, p.after, func(o *store.Object, after string) int {
		return strings.Compare(position(o), after)
	})
	if found {
		at++
	}
	return at
}

// position sorts like lists: names do not contain the separator.
func position(o *store.Object) string { return o.Key.Namespace + "\x00" + o.Key.Name }

// expired returns the error for an old revision. A client may continue an inconsistent list.
func (p page) expired() error {
	if p.after == "" {
		return apierrors.NewResourceExpired(fmt.Sprintf("The resourceVersion for the provided list is too old: %d", p.revision))
	}
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of " +
		"the results")
	err.ErrStatus.Continue = token{After: p.after}.String()
	return err
}

func formatRevision(revision uint64) string { return strconv.FormatUint(revision, 10) }
