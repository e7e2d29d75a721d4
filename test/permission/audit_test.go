package permission

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/test/managers"
)

// event is what of a line of an audit log matters here.
type event struct {
	Verb      string
	User      struct{ Username string }
	ObjectRef *struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	RequestURI     string
	ResponseStatus struct{ Code int }
}

// requests are what users did: each request is the Grant that it needs. Refused lists those that were forbidden.
type requests struct {
	used    map[string]map[managers.Grant]bool // by user
	refused []string
}

// readAudit reads an audit log.
func readAudit(t *testing.T, path string) requests {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	r := requests{used: map[string]map[managers.Grant]bool{}}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		e := event{}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("a line of the audit log: %v", err)
		}
		r.add(e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *requests) add(e event) {
	if e.ResponseStatus.Code == http.StatusForbidden {
		r.refused = append(r.refused, e.User.Username+": "+e.Verb+" "+e.RequestURI)
		return
	}
	if e.ObjectRef == nil {
		return
	}
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	g := managers.Grant{Namespace: e.ObjectRef.Namespace, Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: resource, Name: e.ObjectRef.Name}
	if r.used[e.User.Username] == nil {
		r.used[e.User.Username] = map[managers.Grant]bool{}
	}
	r.used[e.User.Username][g] = true
	// A watch begins with a list. API servers that do not stream lists are asked for it apart.
	if e.Verb == "watch" {
		list := g
		list.Verb = "list"
		r.used[e.User.Username][list] = true
	}
	// Who creates an object by applying it, or by updating what is not there, needs the right to create, too.
	if (e.Verb == "patch" || e.Verb == "update") && e.ResponseStatus.Code == http.StatusCreated {
		g.Verb, g.Name = "create", ""
		r.used[e.User.Username][g] = true
	}
}

// covers reports whether a request needs, among others, this grant.
func covers(g, request managers.Grant) bool {
	return g.Verb == request.Verb && g.Group == request.Group &&
		(g.Resource == request.Resource || g.Resource == "*") &&
		(g.Namespace == "" || g.Namespace == request.Namespace) &&
		(g.Name == "" || g.Name == request.Name)
}

// specific are those of the grants that a request needs: one for a namespace or a name is there to make a general one
// unnecessary.
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
		{"one for the namespace comes first", managers.Grant{Verb: "create", Resource: "secrets", Namespace: "a"}, []managers.Grant{here}},
		{"elsewhere the general one is needed", managers.Grant{Verb: "create", Resource: "secrets", Namespace: "b"}, []managers.Grant{everywhere}},
		{"nothing covers it", managers.Grant{Verb: "get", Resource: "secrets", Namespace: "a"}, nil},
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
		{"the same", managers.Grant{Verb: "get", Resource: "secrets"}, managers.Grant{Verb: "get", Resource: "secrets", Namespace: "a", Name: "b"}, true},
		{"another verb", managers.Grant{Verb: "list", Resource: "secrets"}, managers.Grant{Verb: "get", Resource: "secrets"}, false},
		{"another group", managers.Grant{Verb: "get", Group: "a", Resource: "secrets"}, managers.Grant{Verb: "get", Resource: "secrets"}, false},
		{"all of a group, with subresources", managers.Grant{Verb: "get", Group: "a", Resource: "*"}, managers.Grant{Verb: "get", Group: "a", Resource: "b/status"}, true},
		{"a subresource is not its resource", managers.Grant{Verb: "get", Resource: "nodes"}, managers.Grant{Verb: "get", Resource: "nodes/status"}, false},
		{"elsewhere", managers.Grant{Verb: "get", Resource: "secrets", Namespace: "x"}, managers.Grant{Verb: "get", Resource: "secrets", Namespace: "a"}, false},
		{"another name", managers.Grant{Verb: "get", Resource: "secrets", Name: "x"}, managers.Grant{Verb: "get", Resource: "secrets", Name: "b"}, false},
	} {
		if got := covers(tc.grant, tc.request); got != tc.want {
			t.Errorf("%s: %s covers %s: %t", tc.reason, tc.grant, tc.request, got)
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
	if len(got.refused) != 1 || got.refused[0] != "u: list /api/v1/pods" {
		t.Errorf("refused: %q", got.refused)
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
			t.Errorf("%s is not found: %v", want, got.used)
		}
	}
	if len(got.used["u"]) != 6 {
		t.Errorf("%v", got.used)
	}
}
