package check

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"sigs.k8s.io/cluster-api/standalone/internal/host"
)

// source reads what is copied of a management cluster.
type source struct {
	client dynamic.Interface
	// namespace is that of the Clusters. Empty: all.
	namespace string
	// programs are the managers of ours that run, by the names of their images.
	programs map[string]host.Program
	// authority issues the certificate of the webhooks in the copy.
	authority *authority
	progress  func(format string, args ...any)

	facts *facts
	// objects are those of the copy, encoded, by the key of the storage.
	objects map[string][]byte
	// deployments are those of the managers, as they are in the cluster.
	deployments []*appsv1.Deployment
	// services are those of the managers.
	services map[types.NamespacedName]bool
	// named are the Secrets and ConfigMaps that others refer to.
	named map[schema.GroupVersionResource]map[types.NamespacedName]bool
}

var (
	deploymentResource = appsv1.SchemeGroupVersion.WithResource("deployments")
	secretResource     = corev1.SchemeGroupVersion.WithResource("secrets")
	configMapResource  = corev1.SchemeGroupVersion.WithResource("configmaps")
	serviceResource    = corev1.SchemeGroupVersion.WithResource("services")
)

// read reads everything. What is in motion meanwhile may be seen before or after.
func (s *source) read(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		s.readDeployments, s.readServices, s.readNamespaces, s.readPermissions, s.readWebhooks, s.readDefinitions, s.readSecrets, s.readNamed,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// add adds an object to the copy.
func (s *source) add(r schema.GroupResource, o *unstructured.Unstructured) error {
	content, err := encoded(o)
	if err != nil {
		return fmt.Errorf("encoding %s %s/%s: %w", r, o.GetNamespace(), o.GetName(), err)
	}
	s.objects[keyOf(r, o.GetNamespace(), o.GetName())] = content
	return nil
}

// each reads all objects of a resource in pages. A namespace may be empty.
func (s *source) each(
	ctx context.Context, r schema.GroupVersionResource, namespace string, o metav1.ListOptions, do func(*unstructured.Unstructured) error,
) error {
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return s.client.Resource(r).Namespace(namespace).List(ctx, o)
	}
	p := pager.New(list)
	p.PageSize = page
	err := p.EachListItem(ctx, o, func(item runtime.Object) error { return do(item.(*unstructured.Unstructured)) })
	if err != nil {
		return fmt.Errorf("reading %s: %w", r.GroupResource(), err)
	}
	return nil
}

// into converts an object to its Go type.
func into[T any](o *unstructured.Unstructured) (*T, error) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
	}
	return typed, nil
}

// readDeployments copies the Deployments whose managers ours replace. In the copy they run, whether they run in the cluster or not.
func (s *source) readDeployments(ctx context.Context) error {
	err := s.each(ctx, deploymentResource, "", metav1.ListOptions{}, func(o *unstructured.Unstructured) error {
		d, err := into[appsv1.Deployment](o)
		if err != nil {
			return err
		}
		if s.programs[host.ProgramOf(d.Spec.Template.Spec)] == nil {
			return nil
		}
		s.deployments = append(s.deployments, d)
		s.nameEnvironment(d)
		unstructured.RemoveNestedField(o.Object, "status")
		if err := unstructured.SetNestedField(o.Object, int64(1), "spec", "replicas"); err != nil {
			return err
		}
		return s.add(deploymentResource.GroupResource(), o)
	})
	if err == nil && len(s.deployments) == 0 {
		return errors.New("no Deployment runs a manager of Cluster API (the images cluster-api-controller, kubeadm-bootstrap-controller and " +
			"kubeadm-control-plane-controller): use the kubeconfig of a management cluster")
	}
	return err
}

// nameEnvironment notes which Secrets and ConfigMaps the environment of a manager is from.
func (s *source) nameEnvironment(d *appsv1.Deployment) {
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, from := range c.EnvFrom {
			if from.SecretRef != nil {
				s.name(secretResource, d.Namespace, from.SecretRef.Name)
			}
			if from.ConfigMapRef != nil {
				s.name(configMapResource, d.Namespace, from.ConfigMapRef.Name)
			}
		}
		for _, env := range c.Env {
			if from := env.ValueFrom; from != nil && from.SecretKeyRef != nil {
				s.name(secretResource, d.Namespace, from.SecretKeyRef.Name)
			} else if from != nil && from.ConfigMapKeyRef != nil {
				s.name(configMapResource, d.Namespace, from.ConfigMapKeyRef.Name)
			}
		}
	}
}

func (s *source) name(r schema.GroupVersionResource, namespace, name string) {
	if s.named[r] == nil {
		s.named[r] = map[types.NamespacedName]bool{}
	}
	s.named[r][types.NamespacedName{Namespace: namespace, Name: name}] = true
}

// readServices copies the Services of the managers, with addresses of the copy.
func (s *source) readServices(ctx context.Context) error {
	for _, namespace := range s.namespaces() {
		err := s.each(ctx, serviceResource, namespace, metav1.ListOptions{}, func(o *unstructured.Unstructured) error {
			service, err := into[corev1.Service](o)
			if err != nil || !s.isOfManager(service) {
				return err
			}
			s.services[types.NamespacedName{Namespace: service.Namespace, Name: service.Name}] = true
			return s.addService(service)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// namespaces returns the namespaces of the managers.
func (s *source) namespaces() []string {
	seen := map[string]bool{}
	var all []string
	for _, d := range s.deployments {
		if !seen[d.Namespace] {
			all = append(all, d.Namespace)
		}
		seen[d.Namespace] = true
	}
	return all
}

func (s *source) isOfManager(service *corev1.Service) bool {
	for _, d := range s.deployments {
		if d.Namespace == service.Namespace && len(service.Spec.Selector) > 0 &&
			labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels)) {
			return true
		}
	}
	return false
}

func (s *source) addService(service *corev1.Service) error {
	address := fmt.Sprintf("10.96.200.%d", len(s.services))
	one := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name, UID: service.UID, CreationTimestamp: service.CreationTimestamp,
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: service.Spec.Selector, Ports: service.Spec.Ports,
			ClusterIP: address, ClusterIPs: []string{address}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		},
	}
	for i := range one.Spec.Ports {
		one.Spec.Ports[i].NodePort = 0
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one)
	if err != nil {
		return err
	}
	return s.add(serviceResource.GroupResource(), &unstructured.Unstructured{Object: object})
}

func (s *source) readNamespaces(ctx context.Context) error {
	r := corev1.SchemeGroupVersion.WithResource("namespaces")
	return s.each(ctx, r, "", metav1.ListOptions{}, func(o *unstructured.Unstructured) error { return s.add(r.GroupResource(), o) })
}

// readSecrets copies the Secrets of Clusters.
func (s *source) readSecrets(ctx context.Context) error {
	for _, o := range []metav1.ListOptions{
		{LabelSelector: "cluster.x-k8s.io/cluster-name"}, {FieldSelector: "type=cluster.x-k8s.io/secret"},
	} {
		err := s.each(ctx, secretResource, s.namespace, o, func(o *unstructured.Unstructured) error {
			return s.add(secretResource.GroupResource(), o)
		})
		if err != nil {
			return err
		}
	}
	o := metav1.ListOptions{LabelSelector: "cluster.x-k8s.io/cluster-name"}
	return s.each(ctx, configMapResource, s.namespace, o, func(o *unstructured.Unstructured) error {
		return s.add(configMapResource.GroupResource(), o)
	})
}

// readNamed copies the Secrets and ConfigMaps that others refer to.
func (s *source) readNamed(ctx context.Context) error {
	for r, keys := range s.named {
		for key := range keys {
			if _, ok := s.objects[keyOf(r.GroupResource(), key.Namespace, key.Name)]; ok {
				continue
			}
			o, err := s.client.Resource(r).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("reading %s %s: %w", r.Resource, key, err)
			}
			if err := s.add(r.GroupResource(), o); err != nil {
				return err
			}
		}
	}
	return nil
}

// isOfClusterAPI reports whether a group is one of Cluster API and its providers.
func isOfClusterAPI(group string) bool {
	return group == domain || strings.HasSuffix(group, "."+domain)
}

const (
	domain        = "cluster.x-k8s.io"
	providerLabel = "cluster.x-k8s.io/provider"
)
