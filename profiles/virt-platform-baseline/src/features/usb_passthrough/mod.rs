//! USB devices that virtual machines may have.

use profile_sdk::DraftError;
use serde_json::{Value, json};

use crate::feature::{AskedBy, Brings, Condition, Feature, Maturity, NamedBy};
use crate::node_questions::USB_DEVICES;
use crate::situation::Situation;

pub(crate) static FEATURE: Feature = Feature {
    name: "usbPassthrough",
    choice: |features| features.usb_passthrough,
    does: "lets virtual machines use the USB devices listed in usbDevices",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Nothing,
    named_by: Some(NamedBy { option: "usbDevices", is_set: |options| !options.usb_devices.is_empty(), needed: true }),
    conditions: &[Condition::NodeHas(&USB_DEVICES, "USB devices")],
    needs: &[],
    brings: Brings::HyperConverged(fields),
};

fn fields(situation: &Situation<'_>) -> Result<Value, DraftError> {
    let devices = situation.options.usb_devices.iter().map(|device| {
        json!({
            "resourceName": device.resource_name,
            "selectors": [{"vendor": device.vendor, "product": device.product}],
        })
    });
    let fields = json!({"permittedHostDevices": {"usbHostDevices": devices.collect::<Vec<_>>()}});
    Ok(if situation.is_v1 { json!({"virtualization": fields}) } else { fields })
}
