package access

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// Impersonate returns the user to process a request for: the authenticated user, or one that it may impersonate.
func Impersonate(g *store.Store, who *User, header http.Header) (*User, error) {
	name, groups := header.Get("Impersonate-User"), header.Values("Impersonate-Group")
	if name == "" && len(groups) == 0 {
		return who, nil
	}
	if name == "" {
		return nil, apierrors.NewBadRequest("groups cannot be impersonated without a user")
	}
	asked := []Attributes{{Verb: "impersonate", Resource: "users", Name: name}}
	other := &User{Name: name, Groups: slices.Clone(groups)}
	if account, found := strings.CutPrefix(name, accountPrefix); found {
		namespace, short, _ := strings.Cut(account, ":")
		asked[0] = Attributes{Verb: "impersonate", Resource: "serviceaccounts", Namespace: namespace, Name: short}
		if len(groups) == 0 {
			other.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
		}
	}
	for _, group := range groups {
		asked = append(asked, Attributes{Verb: "impersonate", Resource: "groups", Name: group})
	}
	for _, a := range asked {
		if !Authorize(g, who, a) {
			return nil, Forbidden(who, a)
		}
	}
	other.Groups = append(other.Groups, Authenticated)
	return other, nil
}

// Forbidden returns the error of an API server for a request that a user may not make.
func Forbidden(u *User, a Attributes) error {
	resource := schema.GroupResource{Group: a.Group, Resource: a.Resource}
	what := a.Resource
	if a.Subresource != "" {
		what += "/" + a.Subresource
	}
	where := "at the cluster scope"
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	return apierrors.NewForbidden(resource, a.Name,
		fmt.Errorf("User %q cannot %s resource %q in API group %q %s", u.Name, a.Verb, what, a.Group, where)) // The words of the API.
}
