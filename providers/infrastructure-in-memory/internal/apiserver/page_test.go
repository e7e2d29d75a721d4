package apiserver

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestListsInPages(t *testing.T) {
	c := newTestCluster(t)
	maps := c.client(t).CoreV1().ConfigMaps("default")
	add := func(names ...string) {
		for _, name := range names {
			if _, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	names := func(o metav1.ListOptions) (found []string, meta metav1.ListMeta, err error) {
		list, err := maps.List(t.Context(), o)
		if err != nil {
			return nil, metav1.ListMeta{}, err
		}
		for _, item := range list.Items {
			found = append(found, item.Name)
		}
		return found, list.ListMeta, nil
	}
	add("a", "b", "c", "d", "e")
	first, meta, err := names(metav1.ListOptions{Limit: 2})
	if err != nil || !slices.Equal(first, []string{"a", "b"}) || meta.Continue == "" || *meta.RemainingItemCount != 3 {
		t.Fatalf("first page: %v, %+v, %v", first, meta, err)
	}
	if _, err := c.client(t).CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	second, next, err := names(metav1.ListOptions{Limit: 2, Continue: meta.Continue})
	if err != nil || !slices.Equal(second, []string{"c", "d"}) || next.ResourceVersion != meta.ResourceVersion {
		t.Fatalf("second page, after changes of other kinds: %v, %+v, %v", second, next, err)
	}
	add("bb", "f")
	_, _, err = names(metav1.ListOptions{Limit: 2, Continue: next.Continue})
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) || status.Status().Continue == "" {
		t.Fatalf("next page after a change: %v, want Expired", err)
	}
	rest, end, err := names(metav1.ListOptions{Limit: 2, Continue: status.Status().Continue})
	if err != nil || !slices.Equal(rest, []string{"e", "f"}) || end.Continue != "" || end.RemainingItemCount != nil {
		t.Errorf("next page with an inconsistent continue token: %v, %+v, %v", rest, end, err)
	}
}

func TestResourceVersionsOfReads(t *testing.T) {
	c := newTestCluster(t)
	client := c.client(t)
	old := strconv.FormatUint(c.group.Revision(), 10)
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	now, future := strconv.FormatUint(c.group.Revision(), 10), strconv.FormatUint(c.group.Revision()+1, 10)
	for _, test := range []struct {
		reason, path, query string
		code                int
	}{
		{"any version", "configmaps", "resourceVersion=0", http.StatusOK},
		{"not older than an old version", "configmaps", "resourceVersion=" + old + "&resourceVersionMatch=NotOlderThan", http.StatusOK},
		{"exactly the current version", "configmaps", "resourceVersion=" + now + "&resourceVersionMatch=Exact", http.StatusOK},
		{"exactly an old version, without changes since then", "secrets", "resourceVersion=" + old + "&resourceVersionMatch=Exact", http.StatusOK},
		{"exactly an old version, with changes since then", "configmaps", "resourceVersion=" + old + "&resourceVersionMatch=Exact", http.StatusGone},
		{"a future version", "configmaps", "resourceVersion=" + future, http.StatusGatewayTimeout},
		{"a future version of one object", "configmaps/a", "resourceVersion=" + future, http.StatusGatewayTimeout},
		{"one object, not older than a version", "configmaps/a", "resourceVersion=" + old, http.StatusOK},
		{"an invalid version", "configmaps", "resourceVersion=abc", http.StatusBadRequest},
		{"an invalid limit", "configmaps", "limit=many", http.StatusBadRequest},
		{"an invalid token", "configmaps", "continue=abc", http.StatusBadRequest},
	} {
		var code int
		client.CoreV1().RESTClient().(*rest.RESTClient).Get().RequestURI("/api/v1/namespaces/default/" + test.path + "?" + test.query).
			MaxRetries(0).Do(t.Context()).StatusCode(&code)
		if code != test.code {
			t.Errorf("%s: %s?%s: status %d, want %d", test.reason, test.path, test.query, code, test.code)
		}
	}
}
