package apiserver

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/access"
)

// serveReview handles access reviews. Reviews are not stored: the response is the request's object with its status.
func (c *call) serveReview() error {
	if c.verb != "create" || c.name != "" {
		return apierrors.NewMethodNotSupported(c.resource.groupResource(), c.verb)
	}
	decoded, err := c.decodeBody(c.resource.gvk)
	if err != nil {
		return err
	}
	switch review := decoded.(type) {
	case *authenticationv1.SelfSubjectReview:
		review.Status.UserInfo = authenticationv1.UserInfo{Username: c.user.Name, Groups: c.user.Groups}
	case *authenticationv1.TokenReview:
		review.Status = authenticationv1.TokenReviewStatus{Error: "tokens are not accepted by this cluster"}
	case *authorizationv1.SelfSubjectAccessReview:
		review.Status = c.review(c.user, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	case *authorizationv1.SubjectAccessReview:
		review.Status = c.review(&access.User{Name: review.Spec.User, Groups: review.Spec.Groups}, review.Spec.ResourceAttributes,
			review.Spec.NonResourceAttributes)
	case *authorizationv1.LocalSubjectAccessReview:
		review.Status = c.review(&access.User{Name: review.Spec.User, Groups: review.Spec.Groups}, review.Spec.ResourceAttributes,
			review.Spec.NonResourceAttributes)
	case *authorizationv1.SelfSubjectRulesReview:
		review.Status = c.rules()
	}
	decoded.GetObjectKind().SetGroupVersionKind(c.resource.gvk)
	return c.answerJSON(http.StatusCreated, decoded)
}

func (c *call) review(u *access.User, resource *authorizationv1.ResourceAttributes,
	path *authorizationv1.NonResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	var a access.Attributes
	switch {
	case resource != nil:
		a = access.Attributes{
			Verb: resource.Verb, Group: resource.Group, Resource: resource.Resource, Subresource: resource.Subresource,
			Namespace: resource.Namespace, Name: resource.Name,
		}
	case path != nil:
		a = access.Attributes{Verb: path.Verb, Path: path.Path}
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: access.Authorize(c.group.Store, u, a)}
}

// rules returns the user's rules, which are only complete for cluster admins.
func (c *call) rules() authorizationv1.SubjectRulesReviewStatus {
	everything := access.Attributes{Verb: "*", Group: "*", Resource: "*"}
	if !access.Authorize(c.group.Store, c.user, everything) {
		return authorizationv1.SubjectRulesReviewStatus{Incomplete: true, EvaluationError: "only the rules of cluster administrators are listed"}
	}
	all := []string{"*"}
	return authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}},
		NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
	}
}
