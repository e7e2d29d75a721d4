package webhookcert

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// foreignInjector is the annotation that makes cert-manager write the caBundle of an object. It is removed where this manager writes it:
// otherwise both would overwrite each other forever.
const foreignInjector = "cert-manager.io/inject-ca-from"

// injector configures which CAs API servers trust: it writes the caBundle of all webhooks with the
// manager's Service.
type injector struct {
	reader  client.Reader
	writer  client.Writer
	service types.NamespacedName
	// conversions includes CustomResourceDefinitions.
	conversions bool
	log         logr.Logger
}

// inject writes caBundle where it differs, with one patch per object. It continues after
// errors and returns all of them, except for objects that are not this manager's own (see mine): users who may
// write webhook configurations can use our Service in one, and that must not stop a rotation. Those errors are logged.
func (i injector) inject(ctx context.Context, caBundle []byte) error {
	lists := []client.ObjectList{
		&admissionregistrationv1.ValidatingWebhookConfigurationList{},
		&admissionregistrationv1.MutatingWebhookConfigurationList{},
	}
	if i.conversions {
		lists = append(lists, &apiextensionsv1.CustomResourceDefinitionList{})
	}
	var errs []error
	for _, list := range lists {
		if err := i.reader.List(ctx, list); err != nil {
			errs = append(errs, fmt.Errorf("listing %T: %w", list, err))
			continue
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			err := i.injectInto(ctx, o.(client.Object), caBundle)
			switch {
			case err == nil:
			case i.mine(o.(client.Object)):
				errs = append(errs, err)
			default:
				i.log.Error(err, "Cannot write the CA bundle of another component's webhook configuration with this manager's Service")
			}
			return nil
		})
		if err != nil {
			errs = append(errs, err)
		}
	}
	return kerrors.NewAggregate(errs)
}

func (i injector) injectInto(ctx context.Context, o client.Object, caBundle []byte) error {
	before := o.DeepCopyObject().(client.Object)
	if !i.set(o, caBundle) {
		return nil
	}
	// Lists of webhooks are merged by name, because an index could be another webhook after a concurrent change. Definitions
	// have no list on the path, and do not support strategic merge.
	patch := client.StrategicMergeFrom(before)
	if _, isDefinition := o.(*apiextensionsv1.CustomResourceDefinition); isDefinition {
		patch = client.MergeFrom(before)
	}
	if err := i.writer.Patch(ctx, o, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the CA bundle of %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// mine reports whether an object is in this manager's manifests. Their webhook configurations have the prefix of the
// Service (capi-webhook-service, capi-validating-webhook-configuration). Definitions were selected by the component.
func (i injector) mine(o client.Object) bool {
	prefix, standard := strings.CutSuffix(i.service.Name, "webhook-service")
	if !standard {
		return true
	}
	switch o.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		return o.GetName() == prefix+"validating-webhook-configuration"
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		return o.GetName() == prefix+"mutating-webhook-configuration"
	}
	return true
}

// set changes an object in memory and reports whether it changed.
func (i injector) set(o client.Object, caBundle []byte) bool {
	changed := false
	for _, c := range i.callers(o) {
		if !bytes.Equal(*c, caBundle) {
			*c = caBundle
			changed = true
		}
		if annotations := o.GetAnnotations(); annotations[foreignInjector] != "" {
			delete(annotations, foreignInjector)
			o.SetAnnotations(annotations)
			changed = true
		}
	}
	return changed
}

// callers returns the caBundle fields of an object's webhooks with the manager's Service.
func (i injector) callers(o client.Object) []*[]byte {
	var found []*[]byte
	add := func(namespace, name string, caBundle *[]byte) {
		if namespace == i.service.Namespace && name == i.service.Name {
			found = append(found, caBundle)
		}
	}
	addWebhook := func(c *admissionregistrationv1.WebhookClientConfig) {
		if c.Service != nil {
			add(c.Service.Namespace, c.Service.Name, &c.CABundle)
		}
	}
	switch o := o.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for n := range o.Webhooks {
			addWebhook(&o.Webhooks[n].ClientConfig)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for n := range o.Webhooks {
			addWebhook(&o.Webhooks[n].ClientConfig)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		conversion := o.Spec.Conversion
		if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
			return nil
		}
		if c := conversion.Webhook.ClientConfig; c.Service != nil {
			add(c.Service.Namespace, c.Service.Name, &c.CABundle)
		}
	}
	return found
}
