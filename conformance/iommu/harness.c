/*
 * Runs the reference model of the RISC-V IOMMU specification (riscv-non-isa/riscv-iommu, iommu_ref_model) for another program, which
 * writes requests to its input and reads answers from its output. All numbers are little-endian.
 *
 *   R capabilities:8                                        resets the model and clears memory
 *   M address:8 length:4 bytes                              writes memory
 *   L address:8 length:4                                    reads memory: the bytes
 *   W offset:2 size:1 value:8                               writes a register
 *   r offset:2 size:1                                       reads a register: 8 bytes
 *   C                                                       carries out the commands that wait
 *   T device:4 has_process:1 process:4 privileged:1 kind:1 address:8
 *     translates: refused:1 address:8 is_file:1 file:8 identity:4; the kinds are 0 fetch, 1 read, 2 write
 */
#include "iommu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY (4u << 20)

static iommu_t iommu;
static unsigned char memory[MEMORY];

uint8_t read_memory(uint64_t addr, uint8_t size, char *data, uint32_t rcid, uint32_t mcid, uint32_t pma, int endian) {
    if (addr >= MEMORY || size > MEMORY - addr)
        return ACCESS_FAULT;
    memcpy(data, memory + addr, size);
    return 0;
}

uint8_t read_memory_for_AMO(uint64_t addr, uint8_t size, char *data, uint32_t rcid, uint32_t mcid, uint32_t pma, int endian) {
    return read_memory(addr, size, data, rcid, mcid, pma, endian);
}

uint8_t write_memory(char *data, uint64_t addr, uint32_t size, uint32_t rcid, uint32_t mcid, uint32_t pma, int endian) {
    if (addr >= MEMORY || size > MEMORY - addr)
        return ACCESS_FAULT;
    memcpy(memory + addr, data, size);
    return 0;
}

void iommu_to_hb_do_global_observability_sync(uint8_t PR, uint8_t PW) {}

void send_msg_iommu_to_hb(ats_msg_t *message) {}

void get_attribs_from_req(hb_to_iommu_req_t *req, uint8_t *read, uint8_t *write, uint8_t *exec, uint8_t *priv) {
    *write = req->tr.read_writeAMO == WRITE;
    *exec = !*write && req->exec_req;
    *read = !*write && !req->exec_req;
    *priv = req->pid_valid && req->priv_req ? S_MODE : U_MODE;
}

/* The translation of a large page is never kept beside interrupt files. */
void handle_virtual_interrupt_file_overlap(device_context_t *DC, uint64_t gpa, uint64_t *gst_page_sz) {
    if (DC->msiptp.MODE != MSIPTP_Off)
        *gst_page_sz = PAGESIZE;
}

static void take(void *to, size_t length) {
    if (fread(to, 1, length, stdin) != length)
        exit(0);
}

static uint64_t number(size_t length) {
    uint64_t value = 0;
    take(&value, length);
    return value;
}

static void give(uint64_t value, size_t length) {
    fwrite(&value, 1, length, stdout);
}

static void reset(void) {
    capabilities_t capabilities = {.raw = number(8)};
    fctl_t control = {.raw = 0};
    uint64_t large = 1ull << 30;
    memset(&iommu, 0, sizeof iommu);
    memset(memory, 0, sizeof memory);
    reset_iommu(&iommu, 0, 0, 0, 2, Off, DDT_3LVL, 0xffffff, 0, 0, 0, capabilities, control, large, large, large, large, large,
                large, large, large);
}

static void translate(void) {
    hb_to_iommu_req_t request;
    iommu_to_hb_rsp_t answer;
    memset(&request, 0, sizeof request);
    memset(&answer, 0, sizeof answer);
    request.device_id = number(4);
    request.pid_valid = number(1);
    request.process_id = number(4);
    request.priv_req = number(1);
    unsigned kind = number(1);
    request.exec_req = kind == 0;
    request.tr.at = ADDR_TYPE_UNTRANSLATED;
    request.tr.read_writeAMO = kind == 2 ? WRITE : READ;
    request.tr.iova = number(8);
    request.tr.length = 4;
    iommu_translate_iova(&iommu, &request, &answer);
    /* PPN and S encode page and size as PCIe's translation completions do. */
    uint64_t size = answer.trsp.S ? ((answer.trsp.PPN ^ (answer.trsp.PPN + 1)) + 1) * PAGESIZE : PAGESIZE;
    uint64_t base = (answer.trsp.PPN * PAGESIZE) & ~(size - 1);
    give(answer.status != SUCCESS, 1);
    give(base | (request.tr.iova & (size - 1)), 8);
    give(answer.trsp.is_mrif, 1);
    give(answer.trsp.dest_mrif_addr, 8);
    give(answer.trsp.mrif_nid, 4);
}

int main(void) {
    for (;;) {
        unsigned kind = number(1);
        uint64_t at, length;
        switch (kind) {
        case 'R':
            reset();
            break;
        case 'M':
        case 'L':
            at = number(8);
            length = number(4);
            if (at >= MEMORY || length > MEMORY - at)
                return 1;
            if (kind == 'M')
                take(memory + at, length);
            else
                fwrite(memory + at, 1, length, stdout);
            break;
        case 'W':
            at = number(2);
            length = number(1);
            write_register(&iommu, at, length, number(8));
            break;
        case 'r':
            at = number(2);
            give(read_register(&iommu, at, number(1)), 8);
            break;
        case 'C':
            for (int left = 4096; left > 0; left--)
                process_commands(&iommu);
            break;
        case 'T':
            translate();
            break;
        default:
            return 1;
        }
        fflush(stdout);
    }
}
