//! The program that the supervisor's tests run: what a loader may do, one case each.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod batches;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod cases;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod children;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod deaths;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod devices;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod hostile;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod limits;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod sockets;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod waits;

fn main() {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    cases::run();
}
