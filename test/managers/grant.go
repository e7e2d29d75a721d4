package managers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Grant is one permission of a role: one verb on one resource.
type Grant struct {
	// Namespace restricts it to one namespace. Empty: all namespaces.
	Namespace string
	Verb      string
	// Group and Resource are as in the role: the resource includes a subresource, as in clusters/status, and is "*" for all
	// resources of the group.
	Group, Resource string
	// Name restricts it to one object. Empty: all objects.
	Name string
}

// String returns "verb resource.group" with the namespace and the name, if any, for example
// "get secrets capi-system/capi-webhook-service-cert".
func (g Grant) String() string {
	resource, subresource, _ := strings.Cut(g.Resource, "/")
	text := g.Verb + " " + resource
	if g.Group != "" {
		text += "." + g.Group
	}
	if subresource != "" {
		text += "/" + subresource
	}
	switch {
	case g.Namespace != "" && g.Name != "":
		text += " " + g.Namespace + "/" + g.Name
	case g.Namespace != "":
		text += " " + g.Namespace + "/*"
	case g.Name != "":
		text += " " + g.Name
	}
	return text
}

// review returns a request for whether a user has the grant.
func (g Grant) review(user string) *authorizationv1.SubjectAccessReview {
	resource, subresource, _ := strings.Cut(g.Resource, "/")
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: g.Namespace, Verb: g.Verb, Group: g.Group, Resource: resource, Subresource: subresource, Name: g.Name,
		},
	}}
}

// Grants returns the permissions of a ServiceAccount's roles, sorted. It returns an error if a role does not exist or is
// empty, as aggregated roles are at first.
func Grants(ctx context.Context, c kubernetes.Interface, namespace, name string) ([]Grant, error) {
	isBound := func(subjects []rbacv1.Subject) bool {
		return slices.Contains(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name})
	}
	found := map[Grant]bool{}
	add := func(in, role string, rules []rbacv1.PolicyRule) error {
		if len(rules) == 0 {
			return fmt.Errorf("role %s has no rules", role)
		}
		for _, rule := range rules {
			for _, g := range expand(in, rule) {
				found[g] = true
			}
		}
		return nil
	}
	everywhere, err := c.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, b := range everywhere.Items {
		if !isBound(b.Subjects) {
			continue
		}
		role, err := c.RbacV1().ClusterRoles().Get(ctx, b.RoleRef.Name, metav1.GetOptions{})
		if err := errors.Join(err, add("", b.RoleRef.Name, role.Rules)); err != nil {
			return nil, err
		}
	}
	local, err := c.RbacV1().RoleBindings("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, b := range local.Items {
		if !isBound(b.Subjects) {
			continue
		}
		role, err := c.RbacV1().Roles(b.Namespace).Get(ctx, b.RoleRef.Name, metav1.GetOptions{})
		if err := errors.Join(err, add(b.Namespace, b.RoleRef.Name, role.Rules)); err != nil {
			return nil, err
		}
	}
	grants := make([]Grant, 0, len(found))
	for g := range found {
		grants = append(grants, g)
	}
	slices.SortFunc(grants, func(a, b Grant) int { return strings.Compare(a.String(), b.String()) })
	return grants, nil
}

func expand(namespace string, rule rbacv1.PolicyRule) []Grant {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var out []Grant
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					out = append(out, Grant{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Name: name})
				}
			}
		}
	}
	return out
}
