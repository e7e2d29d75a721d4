package apiserver

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
		review.Status.UserInfo = authenticationv1.UserInfo{Username: c.user.name, Groups: c.user.groups}
	case *authenticationv1.TokenReview:
		review.Status = authenticationv1.TokenReviewStatus{Error: "tokens are not accepted by this cluster"}
	case *authorizationv1.SelfSubjectAccessReview:
		review.Status = c.review(c.user, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	case *authorizationv1.SubjectAccessReview:
		review.Status = c.review(&user{name: review.Spec.User, groups: review.Spec.Groups}, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	case *authorizationv1.LocalSubjectAccessReview:
		review.Status = c.review(&user{name: review.Spec.User, groups: review.Spec.Groups}, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	case *authorizationv1.SelfSubjectRulesReview:
		review.Status = c.rules()
	}
	decoded.GetObjectKind().SetGroupVersionKind(c.resource.gvk)
	return c.answerJSON(http.StatusCreated, decoded)
}

func (c *call) review(u *user, resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	var a attributes
	switch {
	case resource != nil:
		a = attributes{
			verb: resource.Verb, group: resource.Group, resource: resource.Resource, subresource: resource.Subresource,
			namespace: resource.Namespace, name: resource.Name,
		}
	case path != nil:
		a = attributes{verb: path.Verb, path: path.Path}
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: authorize(c.group, u, a)}
}

// rules returns the user's rules, which are only complete for cluster admins.
func (c *call) rules() authorizationv1.SubjectRulesReviewStatus {
	everything := attributes{verb: "*", group: "*", resource: "*"}
	if !authorize(c.group, c.user, everything) {
		return authorizationv1.SubjectRulesReviewStatus{Incomplete: true, EvaluationError: "only the rules of cluster administrators are listed"}
	}
	all := []string{"*"}
	return authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}},
		NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
	}
}
