// SPDX-License-Identifier: Apache-2.0
//! libpcap, loaded when it is first wanted: who never captures needs neither the library nor its headers (pcap(3PCAP)).

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::io;
use std::ptr::NonNull;

/// Names that distributions give the library. A static program loads none.
#[cfg(not(target_feature = "crt-static"))]
const NAMES: [&CStr; 3] = [c"libpcap.so.0.8", c"libpcap.so.1", c"libpcap.so"];
/// `PCAP_ERRBUF_SIZE`.
const MESSAGE_BYTES: usize = 256;
/// `PCAP_TSTAMP_PRECISION_NANO`.
const NANOSECONDS: c_int = 1;
/// `PCAP_NETMASK_UNKNOWN`: only for broadcast addresses, which no filter here asks for.
const NO_NETMASK: u32 = u32::MAX;
/// `PCAP_ERROR_PERM_DENIED` and `PCAP_ERROR_NO_SUCH_DEVICE`.
const PERMISSION_DENIED: c_int = -8;
const NO_SUCH_DEVICE: c_int = -5;
/// Packets wait in the kernel for so long at most, so that they are handed over many at a time.
const HAND_OVER_MS: c_int = 100;
/// The kernel's buffer: a quarter of a second of 64-byte messages at 250,000 a second, headers and all.
const BUFFER_BYTES: c_int = 16 << 20;
/// What libpcap calls raw IP on Linux, and what files call it.
const DLT_RAW: c_int = 12;
const LINKTYPE_RAW: u16 = 101;

/// A `pcap_t`.
#[repr(C)]
struct Handle {
    _private: [u8; 0],
}

/// `struct pcap_pkthdr`; `tv_usec` holds nanoseconds.
#[repr(C)]
struct PacketHeader {
    time: libc::timeval,
    captured_bytes: u32,
    bytes_on_wire: u32,
}

/// `struct bpf_program`.
#[repr(C)]
struct Program {
    length: u32,
    instructions: *mut c_void,
}

/// `struct pcap_stat`.
#[repr(C)]
#[derive(Default)]
struct Statistics {
    received: u32,
    dropped: u32,
    dropped_by_interface: u32,
}

/// What was dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Drops {
    pub(super) by_kernel: u32,
    pub(super) by_interface: u32,
}

/// A captured packet.
#[derive(Debug)]
pub(super) struct Packet<'a> {
    /// Nanoseconds since 1970.
    pub(super) time_ns: u64,
    pub(super) bytes_on_wire: u32,
    pub(super) bytes: &'a [u8],
}

/// The functions that are used, as their manual pages declare them.
struct Functions {
    create: unsafe extern "C" fn(*const c_char, *mut c_char) -> *mut Handle,
    set_snaplen: unsafe extern "C" fn(*mut Handle, c_int) -> c_int,
    set_timeout: unsafe extern "C" fn(*mut Handle, c_int) -> c_int,
    set_buffer_size: unsafe extern "C" fn(*mut Handle, c_int) -> c_int,
    set_tstamp_precision: unsafe extern "C" fn(*mut Handle, c_int) -> c_int,
    activate: unsafe extern "C" fn(*mut Handle) -> c_int,
    geterr: unsafe extern "C" fn(*mut Handle) -> *mut c_char,
    setnonblock: unsafe extern "C" fn(*mut Handle, c_int, *mut c_char) -> c_int,
    get_selectable_fd: unsafe extern "C" fn(*mut Handle) -> c_int,
    compile: unsafe extern "C" fn(*mut Handle, *mut Program, *const c_char, c_int, u32) -> c_int,
    setfilter: unsafe extern "C" fn(*mut Handle, *mut Program) -> c_int,
    freecode: unsafe extern "C" fn(*mut Program),
    datalink: unsafe extern "C" fn(*mut Handle) -> c_int,
    next_ex: unsafe extern "C" fn(*mut Handle, *mut *mut PacketHeader, *mut *const u8) -> c_int,
    stats: unsafe extern "C" fn(*mut Handle, *mut Statistics) -> c_int,
    close: unsafe extern "C" fn(*mut Handle),
}

impl Functions {
    /// A program that is linked statically cannot load a library: its C library is not the host's.
    #[cfg(target_feature = "crt-static")]
    fn load() -> Result<Self, String> {
        Err("this program is linked statically and cannot load libpcap; build it on this host".into())
    }

    #[cfg(not(target_feature = "crt-static"))]
    fn load() -> Result<Self, String> {
        // SAFETY: the names end with a zero byte. The library stays loaded for good.
        let library = NAMES.iter().find_map(|name| unsafe {
            NonNull::new(libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL))
        });
        let library = library.ok_or("libpcap is not installed (package libpcap0.8 or libpcap)")?;
        // SAFETY: each field has the type that the manual page of its function declares.
        unsafe {
            Ok(Self {
                create: function(library, c"pcap_create")?,
                set_snaplen: function(library, c"pcap_set_snaplen")?,
                set_timeout: function(library, c"pcap_set_timeout")?,
                set_buffer_size: function(library, c"pcap_set_buffer_size")?,
                set_tstamp_precision: function(library, c"pcap_set_tstamp_precision")?,
                activate: function(library, c"pcap_activate")?,
                geterr: function(library, c"pcap_geterr")?,
                setnonblock: function(library, c"pcap_setnonblock")?,
                get_selectable_fd: function(library, c"pcap_get_selectable_fd")?,
                compile: function(library, c"pcap_compile")?,
                setfilter: function(library, c"pcap_setfilter")?,
                freecode: function(library, c"pcap_freecode")?,
                datalink: function(library, c"pcap_datalink")?,
                next_ex: function(library, c"pcap_next_ex")?,
                stats: function(library, c"pcap_stats")?,
                close: function(library, c"pcap_close")?,
            })
        }
    }
}

/// # Safety
///
/// `F` is a function pointer of the type that `name` has in `library`.
#[cfg(not(target_feature = "crt-static"))]
unsafe fn function<F: Copy>(library: NonNull<c_void>, name: &CStr) -> Result<F, String> {
    // SAFETY: the library is loaded and the name ends with a zero byte; function pointers are as large as `symbol`.
    unsafe {
        let symbol = libc::dlsym(library.as_ptr(), name.as_ptr());
        if symbol.is_null() {
            return Err(format!("this libpcap has no {} (it is older than 1.5)", name.to_string_lossy()));
        }
        debug_assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
        Ok(std::mem::transmute_copy::<*mut c_void, F>(&symbol))
    }
}

/// A network interface that is listened to.
pub(super) struct Device {
    functions: Functions,
    handle: NonNull<Handle>,
    fd: c_int,
    link_type: u16,
}

// SAFETY: a pcap_t may be used by any one thread at a time, and nothing here shares it.
unsafe impl Send for Device {}

impl Device {
    /// Listen on `interface` to what `filter` lets through, keeping `snap_bytes` of each packet; why not, as a clause.
    pub(super) fn open(interface: &str, filter: &str, snap_bytes: u32) -> Result<Self, String> {
        let functions = Functions::load()?;
        let name = CString::new(interface).map_err(|_| "its name has a zero byte".to_owned())?;
        let mut message = [0 as c_char; MESSAGE_BYTES];
        // SAFETY: the name ends with a zero byte, and the message has the length that the manual page asks for.
        let handle = NonNull::new(unsafe { (functions.create)(name.as_ptr(), message.as_mut_ptr()) });
        let handle = handle.ok_or_else(|| text(message.as_ptr()))?;
        // Closes the handle when anything below fails.
        let mut device = Self { functions, handle, fd: -1, link_type: 0 };
        device.activate(snap_bytes)?;
        device.set_filter(filter)?;
        Ok(device)
    }

    fn activate(&mut self, snap_bytes: u32) -> Result<(), String> {
        let (functions, handle) = (&self.functions, self.handle.as_ptr());
        let mut message = [0 as c_char; MESSAGE_BYTES];
        // SAFETY: the handle is live and not activated yet; the message is as long as asked for.
        unsafe {
            (functions.set_snaplen)(handle, snap_bytes as c_int);
            (functions.set_timeout)(handle, HAND_OVER_MS);
            (functions.set_buffer_size)(handle, BUFFER_BYTES);
            (functions.set_tstamp_precision)(handle, NANOSECONDS);
            match (functions.activate)(handle) {
                PERMISSION_DENIED => {
                    return Err("this needs CAP_NET_RAW (run as root, or setcap cap_net_raw+ep)".into());
                }
                NO_SUCH_DEVICE => return Err("there is no such interface".into()),
                status if status < 0 => return Err(self.last_error()),
                // Positive: warnings, about promiscuous mode or time stamps.
                _ => {}
            }
            if (functions.setnonblock)(handle, 1, message.as_mut_ptr()) != 0 {
                return Err(text(message.as_ptr()));
            }
            self.fd = (functions.get_selectable_fd)(handle);
            self.link_type = match (functions.datalink)(handle) {
                DLT_RAW => LINKTYPE_RAW,
                other => u16::try_from(other).map_err(|_| "its link type is unknown".to_owned())?,
            };
        }
        Ok(())
    }

    fn set_filter(&mut self, filter: &str) -> Result<(), String> {
        let filter = CString::new(filter).map_err(|_| "the filter has a zero byte".to_owned())?;
        let mut program = Program { length: 0, instructions: std::ptr::null_mut() };
        // SAFETY: the handle is active; the program is freed once, after the kernel has its copy.
        unsafe {
            let (functions, handle) = (&self.functions, self.handle.as_ptr());
            if (functions.compile)(handle, &mut program, filter.as_ptr(), 1, NO_NETMASK) != 0 {
                return Err(self.last_error());
            }
            let outcome = (functions.setfilter)(handle, &mut program);
            (functions.freecode)(&mut program);
            if outcome == 0 {
                Ok(())
            } else {
                Err(self.last_error())
            }
        }
    }

    /// What stands in front of the IP header (a LINKTYPE_ value).
    pub(super) fn link_type(&self) -> u16 {
        self.link_type
    }

    /// Sleep until packets are handed over, at most for `limit_ms`.
    pub(super) fn wait(&self, limit_ms: c_int) -> io::Result<()> {
        let mut fd = libc::pollfd { fd: self.fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one live pollfd.
        if unsafe { libc::poll(&mut fd, 1, limit_ms) } >= 0 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        }
    }

    /// The next packet; `None` when none is there.
    pub(super) fn next(&mut self) -> io::Result<Option<Packet<'_>>> {
        let (mut header, mut bytes) = (std::ptr::null_mut(), std::ptr::null());
        // SAFETY: the handle is active. With 1 both pointers are valid until the next call, which needs `self` again.
        unsafe {
            match (self.functions.next_ex)(self.handle.as_ptr(), &mut header, &mut bytes) {
                1 => {
                    let header: &PacketHeader = &*header;
                    let time_ns = header.time.tv_sec as u64 * 1_000_000_000 + header.time.tv_usec as u64;
                    let bytes = std::slice::from_raw_parts(bytes, header.captured_bytes as usize);
                    Ok(Some(Packet { time_ns, bytes_on_wire: header.bytes_on_wire, bytes }))
                }
                0 => Ok(None),
                _ => Err(io::Error::other(self.last_error())),
            }
        }
    }

    /// What was dropped so far.
    pub(super) fn drops(&mut self) -> Drops {
        let mut statistics = Statistics::default();
        // SAFETY: the handle is active and the structure live.
        unsafe { (self.functions.stats)(self.handle.as_ptr(), &mut statistics) };
        Drops { by_kernel: statistics.dropped, by_interface: statistics.dropped_by_interface }
    }

    fn last_error(&self) -> String {
        // SAFETY: the handle is live and its message ends with a zero byte.
        text(unsafe { (self.functions.geterr)(self.handle.as_ptr()) })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the handle is live and used no more.
        unsafe { (self.functions.close)(self.handle.as_ptr()) };
    }
}

/// A message of libpcap.
fn text(message: *const c_char) -> String {
    // SAFETY: all of its messages end with a zero byte and live at least until the next call.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_refused_in_a_clause() {
        let Err(reason) = Device::open("no-such-if0", "udp", 256) else { panic!("it was opened") };
        assert!(!reason.is_empty() && !reason.ends_with('.'), "{reason}");
    }
}
