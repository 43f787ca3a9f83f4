"""What vendors' tools print, by L4T release and board: the forms that parsers must stand.

No board was at hand: the lines have the form that users of each release have published (NVIDIA's developer forum
and manuals, issues and tests of jetson_stats and of exporters for tegrastats), some with figures changed. ``38.2 Thor``
and the two of 39.2 show what is new there: lists of clocks, "off" within a list, one clock for all cores, and the
maximum since start as a third figure.
"""

# ruff: noqa: E501

from __future__ import annotations

NV_TEGRA_RELEASE = {
    "32.4.3": "# R32 (release), REVISION: 4.3, GCID: 21589087, BOARD: t210ref, EABI: aarch64, DATE: Fri Jun 26 04:38:25 UTC 2020",
    "32.7.1": "# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t210ref, EABI: aarch64, DATE: Sat Feb 19 17:05:08 UTC 2022",
    "35.4.1": "# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref, EABI: aarch64, DATE: Tue Aug  1 19:57:35 UTC 2023",
    "36.4.3": "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64, DATE: Wed Jan  8 01:49:37 UTC 2025\n"
    "# KERNEL_VARIANT: oot\nTARGET_USERSPACE_LIB_DIR=nvidia\nTARGET_USERSPACE_LIB_DIR_PATH=usr/lib/aarch64-linux-gnu/nvidia",
    "39.2.0": "# R39 (release), REVISION: 2.0, GCID: 44000000, BOARD: generic, EABI: aarch64, DATE: Mon Jun  1 00:00:00 UTC 2026\n"
    "# KERNEL_VARIANT: oot\nTARGET_USERSPACE_LIB_DIR=nvidia",
}  # fmt: skip

TEGRASTATS = {
    "32.4 Nano": "RAM 2457/3956MB (lfb 104x4MB) SWAP 71/1978MB (cached 5MB) IRAM 0/252kB(lfb 252kB) CPU [28%@1479,21%@1479,"
    "off,off] EMC_FREQ 11%@1600 GR3D_FREQ 76%@921 APE 25 PLL@36C CPU@39.5C PMIC@100C GPU@36C AO@45C thermal@37.75C "
    "POM_5V_IN 5318/5318 POM_5V_GPU 1226/1226 POM_5V_CPU 1064/1064",
    "32.7 Nano": "RAM 1234/3964MB (lfb 310x4MB) SWAP 0/1982MB (cached 0MB) IRAM 0/252kB(lfb 252kB) CPU [12%@1479,5%@1479,"
    "3%@1479,1%@1479] EMC_FREQ 0%@1600 GR3D_FREQ 0%@76 APE 25 PLL@37C CPU@38.5C PMIC@100C GPU@36.5C AO@41.5C "
    "thermal@37.5C POM_5V_IN 2451/2451 POM_5V_GPU 40/40 POM_5V_CPU 652/652",
    "32.7 Xavier": "RAM 4722/31918MB (lfb 5991x4MB) SWAP 0/15959MB (cached 0MB) CPU [5%@1190,1%@1190,0%@1190,2%@1190,off,"
    "off,off,off] EMC_FREQ 0%@1065 GR3D_FREQ 0%@318 APE 150 MTS fg 0% bg 0% AO@33C GPU@33.5C Tdiode@36.25C PMIC@100C "
    "AUX@33C CPU@34.5C thermal@33.6C Tboard@34C GPU 0/0 CPU 311/311 SOC 932/932 CV 0/0 VDDRQ 155/155 SYS5V 1492/1492",
    "32.7 Xavier NX": "RAM 1583/7773MB (lfb 1266x4MB) SWAP 0/3887MB (cached 0MB) CPU [6%@1190,3%@1190,off,off,off,off] "
    "EMC_FREQ 1%@1600 GR3D_FREQ 0%@114 VIC_FREQ 0%@115 APE 150 MTS fg 0% bg 1% AO@38.5C GPU@38C PMIC@100C AUX@38C CPU@40C "
    "thermal@38.65C VDD_IN 3209/3209 VDD_CPU_GPU_CV 445/445 VDD_SOC 1110/1110",
    "35.4 Orin Nano": "09-12-2023 14:21:07 RAM 1937/7471MB (lfb 1076x4MB) SWAP 0/3735MB (cached 0MB) CPU [1%@729,0%@729,"
    "0%@729,0%@729,off,off] EMC_FREQ 0%@2133 GR3D_FREQ 0%@[305] VIC_FREQ 115 APE 200 CV0@-256C CPU@48.031C SOC2@46.562C "
    "SOC0@47.031C CV1@-256C GPU@46.187C tj@48.031C SOC1@46.437C CV2@-256C VDD_IN 4123mW/4123mW "
    "VDD_CPU_GPU_CV 474mW/474mW VDD_SOC 1183mW/1183mW",
    "36.4 Orin Nano": "01-20-2025 10:11:12 RAM 1871/7620MB (lfb 6x4MB) SWAP 0/3810MB (cached 0MB) CPU [0%@729,1%@729,0%@729,"
    "0%@729,0%@729,0%@729] EMC_FREQ 0%@2133 GR3D_FREQ 0%@[0] NVDEC off NVJPG off NVJPG1 off VIC off OFA off APE 200 "
    "cpu@47.812C soc2@46.906C soc0@46.531C gpu@46.218C tj@48.125C soc1@47.125C VDD_IN 4792mW/4792mW "
    "VDD_CPU_GPU_CV 523mW/523mW VDD_SOC 1525mW/1525mW",
    "39.2 Orin Nano": "07-25-2026 09:08:28 RAM 2210/7607MB (lfb 11x4MB) CPU [2%@1344,0%@1344,0%@1344,1%@1344,0%@1344,0%@1344] "
    "EMC_FREQ 1%@3199 GR3D_FREQ 37%@[918] NVDEC0 off NVJPG0 off VIC off OFA off APE 200 cpu@50.125C/52.968C "
    "soc2@49C/49.406C soc0@48.718C/49.531C gpu@50.406C/51.625C tj@50.812C/52.968C soc1@49.25C/49.5C "
    "VDD_IN 7123mW/6890mW/9120mW VDD_CPU_GPU_CV 2101mW/1987mW/3310mW VDD_SOC 1801mW/1790mW/1840mW FUTURE_TOKEN value",
    "39.2 Orin AGX": "07-25-2026 09:08:28 RAM 20642/62817MB (lfb 1x2MB) CPU [23%@2201,10%@2201,4%@2201,14%@2201,30%@2201,"
    "18%@2201,10%@2201,10%@2201,33%@2201,7%@2201,5%@2201,27%@2201] EMC_FREQ 3%@3199 GR3D_FREQ 12%@[1300,1300] NVENC0 off "
    "NVDLA0 off PVA0_FREQ off APE 174 cpu@52.968C/52.968C soc2@48.406C/48.406C gpu@47.625C/47.625C "
    "VDD_GPU_SOC 5139mW/5139mW/5139mW VDD_CPU_CV 3268mW/3268mW/3268mW VIN_SYS_5V0 5500mW/5500mW/5500mW",
    "38.2 Thor": "08-08-2026 20:58:23 RAM 3429/125749MB (lfb 120x4MB) CPU [0%,5%,off]@2601 EMC_FREQ @4266 "
    "GR3D_FREQ @[1574,off,1574] cpu@49.75C/49.75C tj@51.218C/51.218C gpu@51.218C/51.218C "
    "VDD_GPU 6330mW/6330mW/6330mW VIN 28906mW/14453mW/28906mW",
}  # fmt: skip

NVPMODEL = {
    "32.4 Nano": "NVPM WARN: fan mode is not set!\nNV Power Mode: MAXN\n0\n",
    "32.7 Nano": "NV Fan Mode:quiet\nNV Power Mode: MAXN\n0\n",
    "32.7 Nano 5W": "NV Fan Mode:quiet\nNV Power Mode: 5W\n1\n",
    "32.7 Xavier NX": "NV Fan Mode:cool\nNV Power Mode: MODE_15W_6CORE\n2\n",
    "35.4 Orin Nano": "NV Power Mode: 15W\n0\n",
    "36.4 Orin Nano": "NV Power Mode: MAXN_SUPER\n2\n",
    "39.2 Orin Nano": "NVPM VERB: parsing done for /etc/nvpmodel.conf\nNVPM VERB: Current mode: NV Power Mode: 25W\n1\n",
}

# vcgencmd pmic_read_adc of an idle Raspberry Pi 5.
PMIC_PI5 = """\
 3V7_WL_SW_A current(0)=0.08296875A
   3V3_SYS_A current(1)=0.12590720A
   1V8_SYS_A current(2)=0.18104000A
  DDR_VDD2_A current(3)=0.01170936A
  DDR_VDDQ_A current(4)=0.00000000A
   1V1_SYS_A current(5)=0.17469630A
    0V8_SW_A current(6)=0.32796380A
  VDD_CORE_A current(7)=1.03293000A
   3V3_DAC_A current(17)=0.00018310A
   3V3_ADC_A current(18)=0.00006103A
   0V8_AON_A current(16)=0.00610350A
      HDMI_A current(22)=0.01220700A
 3V7_WL_SW_V volt(8)=3.71320000V
   3V3_SYS_V volt(9)=3.30990000V
   1V8_SYS_V volt(10)=1.79870000V
  DDR_VDD2_V volt(11)=1.10400000V
  DDR_VDDQ_V volt(12)=0.60000000V
   1V1_SYS_V volt(13)=1.10200000V
    0V8_SW_V volt(14)=0.80200000V
  VDD_CORE_V volt(15)=0.72040000V
   3V3_DAC_V volt(20)=3.30900000V
   3V3_ADC_V volt(21)=3.31000000V
   0V8_AON_V volt(19)=0.79830000V
      HDMI_V volt(23)=5.13820000V
     EXT5V_V volt(24)=5.15070000V
      BATT_V volt(25)=0.00000000V
"""

# vcgencmd on a board where the user is not in the group video, and on firmware that lacks a command.
VCGENCMD_REFUSED = "VCHI initialization failed\n"
VCGENCMD_UNKNOWN = 'error=1 error_msg="Command not registered"\n'
