package permission

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/test/managers"
)

// event has the relevant fields of an audit log entry.
type event struct {
	Verb      string
	User      struct{ Username string }
	ObjectRef *struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	RequestURI               string
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
}

// isWrite reports whether the request changes an object, other than those that every user may create to ask about itself or others.
func (e event) isWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb) && e.ObjectRef != nil &&
		!slices.Contains([]string{"authorization.k8s.io", "authentication.k8s.io"}, e.ObjectRef.APIGroup)
}

// requests has the requests of users, each as the Grant that it needs, and those that were forbidden.
type requests struct {
	used      map[string]map[managers.Grant]bool // by user
	forbidden []string
	// denied counts the forbidden requests of users, each as the Grant that it would need, without the name of an object.
	denied map[string]map[managers.Grant]int
	// events are all entries.
	events []event
}

// readAudit reads an audit log.
func readAudit(t *testing.T, path string) requests {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	r := requests{used: map[string]map[managers.Grant]bool{}, denied: map[string]map[managers.Grant]int{}}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		e := event{}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("parsing the audit log: %v", err)
		}
		r.add(e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *requests) add(e event) {
	r.events = append(r.events, e)
	if e.ResponseStatus.Code == http.StatusForbidden {
		r.forbidden = append(r.forbidden, e.User.Username+": "+e.Verb+" "+e.RequestURI)
	}
	if e.ObjectRef == nil {
		return
	}
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	g := managers.Grant{Namespace: e.ObjectRef.Namespace, Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: resource, Name: e.ObjectRef.Name}
	if e.ResponseStatus.Code == http.StatusForbidden {
		if r.denied[e.User.Username] == nil {
			r.denied[e.User.Username] = map[managers.Grant]int{}
		}
		r.denied[e.User.Username][managers.Grant{Verb: g.Verb, Group: g.Group, Resource: g.Resource}]++
		return
	}
	if r.used[e.User.Username] == nil {
		r.used[e.User.Username] = map[managers.Grant]bool{}
	}
	r.used[e.User.Username][g] = true
	// A watch starts with a list, which is a separate request if the API server does not stream lists.
	if e.Verb == "watch" {
		list := g
		list.Verb = "list"
		r.used[e.User.Username][list] = true
	}
	// Apply and update requests that create an object also need the permission to create it.
	if (e.Verb == "patch" || e.Verb == "update") && e.ResponseStatus.Code == http.StatusCreated {
		g.Verb, g.Name = "create", ""
		r.used[e.User.Username][g] = true
	}
}

// covers reports whether a grant permits a request.
func covers(g, request managers.Grant) bool {
	return g.Verb == request.Verb && g.Group == request.Group &&
		(g.Resource == request.Resource || g.Resource == "*") &&
		(g.Namespace == "" || g.Namespace == request.Namespace) &&
		(g.Name == "" || g.Name == request.Name)
}

// specific returns the grants that permit a request. Grants for a namespace or a name take precedence: they exist so that a
// general grant is not needed.
func specific(granted []managers.Grant, request managers.Grant) []managers.Grant {
	var general, special []managers.Grant
	for _, g := range granted {
		switch {
		case !covers(g, request):
		case g.Namespace != "" || g.Name != "":
			special = append(special, g)
		default:
			general = append(general, g)
		}
	}
	if len(special) > 0 {
		return special
	}
	return general
}

func TestSpecific(t *testing.T) {
	everywhere, here := managers.Grant{Verb: "create", Resource: "secrets"}, managers.Grant{Verb: "create", Resource: "secrets", Namespace: "a"}
	for _, tc := range []struct {
		reason  string
		request managers.Grant
		want    []managers.Grant
	}{
		{"a grant for the namespace takes precedence", managers.Grant{Verb: "create", Resource: "secrets", Namespace: "a"}, []managers.Grant{here}},
		{"in another namespace, the general grant is needed", managers.Grant{Verb: "create", Resource: "secrets", Namespace: "b"}, []managers.Grant{everywhere}},
		{"no grant permits the request", managers.Grant{Verb: "get", Resource: "secrets", Namespace: "a"}, nil},
	} {
		if diff := cmp.Diff(tc.want, specific([]managers.Grant{everywhere, here}, tc.request)); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		grant   managers.Grant
		request managers.Grant
		want    bool
	}{
		{"the same verb and resource", managers.Grant{Verb: "get", Resource: "secrets"}, managers.Grant{Verb: "get", Resource: "secrets", Namespace: "a", Name: "b"}, true},
		{"another verb", managers.Grant{Verb: "list", Resource: "secrets"}, managers.Grant{Verb: "get", Resource: "secrets"}, false},
		{"another group", managers.Grant{Verb: "get", Group: "a", Resource: "secrets"}, managers.Grant{Verb: "get", Resource: "secrets"}, false},
		{"all resources of a group, with subresources", managers.Grant{Verb: "get", Group: "a", Resource: "*"}, managers.Grant{Verb: "get", Group: "a", Resource: "b/status"}, true},
		{"a subresource", managers.Grant{Verb: "get", Resource: "nodes"}, managers.Grant{Verb: "get", Resource: "nodes/status"}, false},
		{"another namespace", managers.Grant{Verb: "get", Resource: "secrets", Namespace: "x"}, managers.Grant{Verb: "get", Resource: "secrets", Namespace: "a"}, false},
		{"another name", managers.Grant{Verb: "get", Resource: "secrets", Name: "x"}, managers.Grant{Verb: "get", Resource: "secrets", Name: "b"}, false},
	} {
		if got := covers(tc.grant, tc.request); got != tc.want {
			t.Errorf("%s: covers(%s, %s) = %t", tc.reason, tc.grant, tc.request, got)
		}
	}
}

func TestAudit(t *testing.T) {
	path := t.TempDir() + "/log"
	log := strings.Join([]string{
		`{"verb":"get","user":{"username":"u"},"objectRef":{"resource":"nodes","name":"n","apiVersion":"v1"},"responseStatus":{"code":404}}`,
		`{"verb":"patch","user":{"username":"u"},"objectRef":{"apiGroup":"a","resource":"b","subresource":"status","namespace":"x","name":"n"},"responseStatus":{"code":200}}`,
		`{"verb":"patch","user":{"username":"u"},"objectRef":{"apiGroup":"a","resource":"c","namespace":"x","name":"n"},"responseStatus":{"code":201}}`,
		`{"verb":"list","user":{"username":"u"},"requestURI":"/api/v1/pods","objectRef":{"resource":"pods"},"responseStatus":{"code":403}}`,
		`{"verb":"get","user":{"username":"u"},"requestURI":"/api","responseStatus":{"code":200}}`,
		`{"verb":"watch","user":{"username":"u"},"objectRef":{"resource":"events"},"responseStatus":{"code":200}}`,
	}, "\n")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	got := readAudit(t, path)
	if len(got.forbidden) != 1 || got.forbidden[0] != "u: list /api/v1/pods" {
		t.Errorf("forbidden requests: %q", got.forbidden)
	}
	for _, want := range []managers.Grant{
		{Verb: "get", Resource: "nodes", Name: "n"},
		{Verb: "patch", Group: "a", Resource: "b/status", Namespace: "x", Name: "n"},
		{Verb: "patch", Group: "a", Resource: "c", Namespace: "x", Name: "n"},
		{Verb: "create", Group: "a", Resource: "c", Namespace: "x"},
		{Verb: "watch", Resource: "events"},
		{Verb: "list", Resource: "events"},
	} {
		if !got.used["u"][want] {
			t.Errorf("%s is missing: %v", want, got.used)
		}
	}
	if len(got.used["u"]) != 6 {
		t.Errorf("%v", got.used)
	}
}
